/* tile.h: the static files of C2SP tlog-tiles: tile/<L>/<N>, tile/entries/<N>, partial ones in
 * <N>.p/<W>. All of it is derived from the segments: written without sync, rebuilt when missing. */
#ifndef AUDIT_TILE_H
#define AUDIT_TILE_H
#include "audit/tree.h"
#include "base/buf.h"

#define TILE_ENTRIES (-1) /* as a level: entry bundles */

typedef struct tile_id {
    int level;      /* tile level, or TILE_ENTRIES */
    uint64_t index; /* of the tile in its level */
    unsigned width; /* 1..256; 256 is a full tile */
} tile_id;

/* Initialises ret_path. */
IG_MUST_USE ig_status tile_path(const char *dir, tile_id id, buf *ret_path);
/* Visible whole or not at all. A full tile takes the place of its partial ones, which are
 * deleted. */
IG_MUST_USE ig_status tile_write(const char *dir, tile_id id, const void *p, size_t n);
/* Initialises ret_bytes. A full tile stands in for a partial one of the same index. */
IG_MUST_USE ig_status tile_read(const char *dir, tile_id id, buf *ret_bytes);
bool tile_exists(const char *dir, tile_id id);
/* Appends one entry of a bundle: big-endian 16-bit length, bytes. */
void tile_entry_add(buf *bundle, str entry);
#define TILE_MAX_BUNDLE ((size_t)TREE_TILE_WIDTH * (2 + TREE_MAX_ENTRY))
#endif
