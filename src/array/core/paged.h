/* paged.h: how attention over a paged pool is cut; how a page is laid out says ingot/fast.h. */
#ifndef ARRAY_PAGED_H
#define ARRAY_PAGED_H
#include "ingot/fast.h"

#define KV_PAGE IG_PAGE_POSITIONS /* positions in a page, and in a block of attention */
#define KV_SPLIT 256              /* positions in a split */
#endif
