/* tfilter.h: the two halves of the filters. */
#ifndef LM_TEMPLATE_TFILTER_H
#define LM_TEMPLATE_TFILTER_H
#include "lm/template/trun.h"

typedef ig_status tfilter_fn(trun *r, tval v, const tval *a,
                             tval *ret); /* a: as the row's params */
typedef ig_status tfilter_args_fn(trun *r, tval v, const targs *args, tval *ret);
typedef struct tfilter_row {
    const char *name;
    tfilter_fn *call;
    tfilter_args_fn *call_args; /* instead of call */
    const char *params;
    size_t n_needed;
} tfilter_row;

/* tfilter_seq.c */
tfilter_fn tfilter_dictsort, tfilter_first, tfilter_items, tfilter_join, tfilter_last, tfilter_list,
    tfilter_max, tfilter_min, tfilter_reverse, tfilter_sort, tfilter_sum, tfilter_unique;
tfilter_args_fn tfilter_map, tfilter_reject, tfilter_rejectattr, tfilter_select, tfilter_selectattr;
#endif
