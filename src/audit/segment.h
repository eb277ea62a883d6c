/* segment.h: the bytes of a segment file, the primary evidence of a log.
 *
 *   header, 512 bytes   "INGOTLOG", u32 version 1, u32 crc, u64 index of the first leaf, 32 bytes
 *                       root of the tree before it, u16 length of origin, origin, zeros
 *   records             u32 len | kind << 24, u32 crc, u64 index, len bytes, zeros up to 8
 *   zeros               to the end of the file
 *
 * Integers are little-endian. crc is CRC-32C: of a header over its other 508 bytes, of a record
 * over its first four bytes, index and bytes. A leaf's index is its place in the log. A checkpoint
 * record holds a signed note; its index is the size that the note signs, and it stands directly
 * after the leaf that completes this size. */
#ifndef AUDIT_SEGMENT_H
#define AUDIT_SEGMENT_H
#include "audit/key.h"
#include "audit/tree.h"
#include "base/buf.h"

#define SEGMENT_HEADER_N 512
#define SEGMENT_RECORD_N 16 /* before the bytes of a record */
#define SEGMENT_MAX_RECORD (SEGMENT_RECORD_N + 8192)
#define SEGMENT_MIN_BYTES ((size_t)64 << 10)
#define SEGMENT_MAX_BYTES ((size_t)1 << 30)

typedef enum record_kind { RECORD_LEAF = 1, RECORD_CHECKPOINT = 2 } record_kind;

typedef struct segment_header {
    uint64_t first; /* index of the first leaf */
    tree_hash root; /* of the tree of `first` leaves */
    char origin[KEY_MAX_NAME + 1];
} segment_header;

void segment_header_write(const segment_header *h, uint8_t out[SEGMENT_HEADER_N]);
/* False when the bytes are no header: magic, version, crc, lengths or the zeros after it. */
bool segment_header_read(const uint8_t in[SEGMENT_HEADER_N], segment_header *ret_header);

static inline size_t segment_record_size(size_t n_bytes)
{
    return (SEGMENT_RECORD_N + n_bytes + 7) & ~(size_t)7;
}
void segment_record_write(record_kind kind, uint64_t index, str bytes, buf *out);

typedef struct segment_record {
    record_kind kind;
    uint64_t index;
    str bytes;   /* inside the scanned memory */
    size_t size; /* of the whole record */
} segment_record;

typedef enum segment_next { SEGMENT_RECORD, SEGMENT_ZEROS, SEGMENT_BAD } segment_next;
/* What stands at p: a whole record, nothing but the zeros of unwritten space (checked over 16 bytes
 * only), or neither. */
segment_next segment_read(const uint8_t *p, size_t n, segment_record *ret_record);
bool segment_all_zero(const uint8_t *p, size_t n);

uint32_t crc32c(uint32_t crc, const void *p, size_t n);
#endif
