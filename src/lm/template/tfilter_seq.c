/* tfilter_seq.c: filters over sequences. Python makes generators of map, select, reject, unique and
 * items; here their items are made at once, and the value is a generator in what a template can
 * see: always true, without length or index, and used up by the first that reads it. */
#include <string.h>
#include "lm/template/tfilter.h"
#include "lm/template/tunicode.h"

/* --- attributes: "a.b.0" names items of items */

static ig_status one_attribute(trun *r, tval v, str path, tval dflt, tval *ret)
{
    while (true) {
        const char *dot = memchr(path.p, '.', path.n);
        str part = {path.p, dot ? (size_t)(dot - path.p) : path.n};
        int64_t number;
        tval key;
        TRY(tval_new_str(r, part.p, part.n, true, &key));
        if (str_int(part, 0, INT32_MAX, &number)) key = tval_int(number, true);
        TRY(tattr_item(r, v, key, &v));
        if (v.kind == T_UNDEFINED && dflt.kind != T_MISSING && dflt.kind != T_NONE) v = dflt;
        if (!dot) break;
        path = (str){dot + 1, path.n - part.n - 1};
    }
    *ret = v;
    return IG_OK;
}

/* The attribute that a filter's argument names; the value itself without one. */
static ig_status attribute_of(trun *r, tval v, tval attribute, tval dflt, tval *ret)
{
    *ret = v;
    if (attribute.kind == T_MISSING || attribute.kind == T_NONE) return IG_OK;
    if (attribute.kind != T_STR) return tattr_item(r, v, attribute, ret);
    TRY(tstr_flatten(r->a, attribute.s));
    return one_attribute(r, v, tstr_bytes(attribute.s), dflt, ret);
}

static ig_status without_case(trun *r, tval v, bool case_sensitive, tval *ret)
{
    *ret = v;
    if (case_sensitive || v.kind != T_STR) return IG_OK;
    TRY(tstr_flatten(r->a, v.s));
    return tstrmethod_case(r, v.s, CASE_LOWER, ret);
}

static ig_status key_of(trun *r, tval v, tval attribute, bool case_sensitive, tval *ret)
{
    TRY(attribute_of(r, v, attribute, tval_missing(), &v));
    return without_case(r, v, case_sensitive, ret);
}

/* Attributes with commas between them, for sort: a list. */
static ig_status keys_of(trun *r, tval v, tval attributes, bool case_sensitive, tval *ret)
{
    if (attributes.kind != T_STR) return key_of(r, v, attributes, case_sensitive, ret);
    TRY(tstr_flatten(r->a, attributes.s));
    str all = tstr_bytes(attributes.s);
    size_t n = 1, k = 0;
    for (size_t i = 0; i < all.n; i++) n += all.p[i] == ',';
    tseq *list;
    TRY(tval_new_seq(r, SEQ_LIST, n, true, &list));
    for (size_t from = 0; k < n; k++) {
        const char *comma = memchr(all.p + from, ',', all.n - from);
        size_t end = comma ? (size_t)(comma - all.p) : all.n;
        tval found;
        TRY(one_attribute(r, v, (str){all.p + from, end - from}, tval_missing(), &found));
        TRY(without_case(r, found, case_sensitive, &list->items[k]));
        from = end + 1;
    }
    *ret = tval_seq(list);
    return IG_OK;
}

/* --- filters */

static ig_status copy_as(trun *r, tseq_kind kind, const tseq *items, tseq **ret)
{
    TRY(tval_new_seq(r, kind, items->n, items->trusted, ret));
    if (items->n) memcpy((*ret)->items, items->items, items->n * sizeof *items->items);
    return IG_OK;
}

ig_status tfilter_list(trun *r, tval v, const tval *a, tval *ret)
{
    const tseq *items;
    tseq *list;
    (void)a;
    TRY(tval_iterate(r, v, &items));
    TRY(copy_as(r, SEQ_LIST, items, &list));
    *ret = tval_seq(list);
    return IG_OK;
}

ig_status tfilter_first(trun *r, tval v, const tval *a, tval *ret)
{
    const tseq *items;
    (void)a;
    if (v.kind == T_SEQ && v.seq->kind == SEQ_GENERATOR) {
        if (v.seq->at == v.seq->n) return tval_undefined(r, str_of("first item"), "sequence", ret);
        *ret = v.seq->items[v.seq->at++];
        return IG_OK;
    }
    TRY(tval_iterate(r, v, &items));
    if (!items->n) return tval_undefined(r, str_of("first item"), "sequence", ret);
    *ret = items->items[0];
    return IG_OK;
}

ig_status tfilter_last(trun *r, tval v, const tval *a, tval *ret)
{
    const tseq *items;
    (void)a;
    if (v.kind == T_SEQ && v.seq->kind == SEQ_GENERATOR)
        return ig_fail(IG_EINVAL, "last of a generator");
    TRY(tval_iterate(r, v, &items));
    if (!items->n) return tval_undefined(r, str_of("last item"), "sequence", ret);
    *ret = items->items[items->n - 1];
    return IG_OK;
}

ig_status tfilter_reverse(trun *r, tval v, const tval *a, tval *ret)
{
    const tseq *items;
    tseq *reversed;
    (void)a;
    if (v.kind == T_STR)
        return tattr_slice(r, v, tval_none(), tval_none(), tval_int(-1, true), ret);
    bool generator = v.kind == T_SEQ && v.seq->kind == SEQ_GENERATOR;
    TRY(tval_iterate(r, v, &items));
    TRY(tval_new_seq(r, generator ? SEQ_LIST : SEQ_GENERATOR, items->n, items->trusted, &reversed));
    for (size_t i = 0; i < items->n; i++) reversed->items[i] = items->items[items->n - 1 - i];
    *ret = tval_seq(reversed);
    return IG_OK;
}

static ig_status pairs_of(trun *r, const tdict *d, tseq_kind kind, tseq **ret)
{
    TRY(tval_new_seq(r, kind, d->n, d->trusted, ret));
    for (size_t i = 0; i < d->n; i++) {
        tseq *pair;
        TRY(tval_new_seq(r, SEQ_TUPLE, 2, d->trusted, &pair));
        pair->items[0] = d->keys[i];
        pair->items[1] = d->values[i];
        (*ret)->items[i] = tval_seq(pair);
    }
    return IG_OK;
}

ig_status tfilter_items(trun *r, tval v, const tval *a, tval *ret)
{
    static const tdict empty = {.trusted = true};
    tseq *pairs;
    (void)a;
    if (v.kind != T_DICT && v.kind != T_UNDEFINED)
        return ig_fail(IG_EINVAL, "items of a %s", tval_type(v));
    TRY(pairs_of(r, v.kind == T_DICT ? v.dict : &empty, SEQ_GENERATOR, &pairs));
    *ret = tval_seq(pairs);
    return IG_OK;
}

ig_status tfilter_dictsort(trun *r, tval v, const tval *a, tval *ret)
{
    const tstr *by = NULL;
    tseq *pairs, *keys;
    if (v.kind != T_DICT) return ig_fail(IG_EINVAL, "dictsort of a %s", tval_type(v));
    if (a[1].kind != T_MISSING) TRY(targs_str(r, "dictsort", a[1], &by));
    bool by_value = by && tstr_is(by, "value");
    if (by && !by_value && !tstr_is(by, "key"))
        return ig_fail(IG_EINVAL, "dictsort: by must be key or value");
    TRY(pairs_of(r, v.dict, SEQ_LIST, &pairs));
    TRY(tval_new_seq(r, SEQ_LIST, pairs->n, true, &keys));
    for (size_t i = 0; i < pairs->n; i++)
        TRY(without_case(r, pairs->items[i].seq->items[by_value], tval_truth(a[0]),
                         &keys->items[i]));
    TRY(tval_sort(r, pairs->items, keys->items, pairs->n, tval_truth(a[2])));
    *ret = tval_seq(pairs);
    return IG_OK;
}

ig_status tfilter_sort(trun *r, tval v, const tval *a, tval *ret)
{
    const tseq *items;
    tseq *sorted, *keys;
    TRY(tval_iterate(r, v, &items));
    TRY(copy_as(r, SEQ_LIST, items, &sorted));
    TRY(tval_new_seq(r, SEQ_LIST, items->n, true, &keys));
    for (size_t i = 0; i < items->n; i++)
        TRY(keys_of(r, items->items[i], a[2], tval_truth(a[1]), &keys->items[i]));
    TRY(tval_sort(r, sorted->items, keys->items, sorted->n, tval_truth(a[0])));
    *ret = tval_seq(sorted);
    return IG_OK;
}

ig_status tfilter_unique(trun *r, tval v, const tval *a, tval *ret)
{
    const tseq *items;
    tseq *unique, *keys;
    TRY(tval_iterate(r, v, &items));
    TRY(tval_new_seq(r, SEQ_GENERATOR, items->n, items->trusted, &unique));
    TRY(tval_new_seq(r, SEQ_LIST, items->n, true, &keys));
    unique->n = 0;
    for (size_t i = 0; i < items->n; i++) {
        tval *key = &keys->items[unique->n];
        bool seen = false;
        TRY(key_of(r, items->items[i], a[1], tval_truth(a[0]), key));
        for (size_t k = 0; k < unique->n && !seen; k++)
            TRY(tval_equal(r, keys->items[k], *key, &seen));
        TRY(trun_charge(r, 4 * unique->n));
        if (!seen) unique->items[unique->n++] = items->items[i];
    }
    *ret = tval_seq(unique);
    return IG_OK;
}

/* The item whose key is first in order (side -1) or last (side 1); the earliest among equals. */
static ig_status extreme(trun *r, tval v, const tval *a, int side, tval *ret)
{
    const tseq *items;
    tval best_key = tval_missing();
    TRY(tval_iterate(r, v, &items));
    if (!items->n)
        return tval_undefined(r, str_of("item: the sequence was empty"), "sequence", ret);
    for (size_t i = 0; i < items->n; i++) {
        tval key;
        int c = side;
        TRY(key_of(r, items->items[i], a[1], tval_truth(a[0]), &key));
        if (i) TRY(tval_order(r, key, best_key, &c));
        if (c != side) continue;
        best_key = key;
        *ret = items->items[i];
    }
    return IG_OK;
}

ig_status tfilter_max(trun *r, tval v, const tval *a, tval *ret)
{
    return extreme(r, v, a, 1, ret);
}
ig_status tfilter_min(trun *r, tval v, const tval *a, tval *ret)
{
    return extreme(r, v, a, -1, ret);
}

ig_status tfilter_sum(trun *r, tval v, const tval *a, tval *ret)
{
    const tseq *items;
    tval sum = a[1].kind == T_MISSING ? tval_int(0, true) : a[1];
    if (sum.kind == T_STR) return ig_fail(IG_EINVAL, "sum of strings");
    TRY(tval_iterate(r, v, &items));
    for (size_t i = 0; i < items->n; i++) {
        tval item;
        TRY(attribute_of(r, items->items[i], a[0], tval_missing(), &item));
        TRY(toperate_binary(r, OP_ADD, sum, item, &sum));
    }
    *ret = sum;
    return IG_OK;
}

ig_status tfilter_join(trun *r, tval v, const tval *a, tval *ret)
{
    AUTO(tbuild) b = {0};
    const tseq *items;
    const tstr *separator = NULL, *made;
    if (a[0].kind != T_MISSING) TRY(ttext_of(r, a[0], &separator));
    TRY(tval_iterate(r, v, &items));
    tbuild_init(&b, r->limits.max_output);
    for (size_t i = 0; i < items->n; i++) {
        tval item;
        TRY(attribute_of(r, items->items[i], a[1], tval_missing(), &item));
        TRY(trun_charge(r, 64 + (separator ? separator->n : 0)));
        if (i && separator) tbuild_str(&b, separator);
        TRY(ttext_str(r, &b, item));
    }
    TRY(tbuild_take(&b, r->a, &made));
    *ret = tval_str(made);
    return IG_OK;
}

/* args without its first n_first positional ones. */
static targs rest_of(const targs *args, size_t n_first)
{
    targs rest = *args;
    rest.n -= n_first;
    rest.v += n_first;
    return rest;
}

static const tval *named(const targs *args, const char *name)
{
    for (size_t i = 0; i < args->n_named; i++)
        if (tstr_is(args->names[i], name)) return &args->named[i];
    return NULL;
}

/* Of what is not true, map and select make an empty generator without looking further. */
static ig_status no_items(trun *r, tval *ret)
{
    tseq *s;
    TRY(tval_new_seq(r, SEQ_GENERATOR, 0, true, &s));
    *ret = tval_seq(s);
    return IG_OK;
}

/* map(attribute=...) or map('filter', ...). */
ig_status tfilter_map(trun *r, tval v, const targs *args, tval *ret)
{
    const tseq *items;
    tseq *mapped;
    const tval *attribute = args->n ? NULL : named(args, "attribute"),
               *dflt = named(args, "default");
    const tstr *name;
    int filter = -1;
    targs rest = *args;
    if (!tval_truth(v)) return no_items(r, ret);
    if (attribute) {
        if (args->n_named > 1 + (size_t)(dflt != NULL))
            return ig_fail(IG_EINVAL, "map: an unknown named argument");
    } else {
        if (!args->n) return ig_fail(IG_EINVAL, "map needs a filter or attribute=");
        TRY(targs_str(r, "map", args->v[0], &name));
        filter = tfilter_find(tstr_bytes(name));
        if (filter < 0) return ig_fail(IG_EINVAL, "no filter named %.*s", (int)name->n, name->p);
        rest = rest_of(args, 1);
    }
    TRY(tval_iterate(r, v, &items));
    TRY(tval_new_seq(r, SEQ_GENERATOR, items->n, items->trusted, &mapped));
    for (size_t i = 0; i < items->n; i++) {
        TRY(trun_charge(r, 64));
        if (attribute)
            TRY(attribute_of(r, items->items[i], *attribute, dflt ? *dflt : tval_missing(),
                             &mapped->items[i]));
        else
            TRY(tfilter_call(r, filter, items->items[i], &rest, &mapped->items[i]));
    }
    *ret = tval_seq(mapped);
    return IG_OK;
}

/* Items for which a test (or their truth) holds, or with `keep` false does not. */
static ig_status choose(trun *r, const char *what, tval v, const targs *args, bool by_attribute,
                        bool keep, tval *ret)
{
    const tseq *items;
    tseq *chosen;
    const tstr *name;
    int test = -1;
    targs rest = *args;
    if (!tval_truth(v)) return no_items(r, ret);
    if (by_attribute) {
        if (!args->n) return ig_fail(IG_EINVAL, "%s needs the name of an attribute", what);
        rest = rest_of(args, 1);
    }
    if (rest.n) {
        TRY(targs_str(r, what, rest.v[0], &name));
        test = ttest_find(tstr_bytes(name));
        if (test < 0) return ig_fail(IG_EINVAL, "no test named %.*s", (int)name->n, name->p);
        rest = rest_of(&rest, 1);
    }
    TRY(tval_iterate(r, v, &items));
    TRY(tval_new_seq(r, SEQ_GENERATOR, items->n, items->trusted, &chosen));
    chosen->n = 0;
    for (size_t i = 0; i < items->n; i++) {
        tval item = items->items[i];
        TRY(trun_charge(r, 64));
        if (by_attribute) TRY(attribute_of(r, item, args->v[0], tval_missing(), &item));
        bool holds = tval_truth(item);
        if (test >= 0) TRY(ttest_call(r, test, item, &rest, &holds));
        if (holds == keep) chosen->items[chosen->n++] = items->items[i];
    }
    *ret = tval_seq(chosen);
    return IG_OK;
}

ig_status tfilter_select(trun *r, tval v, const targs *a, tval *ret)
{
    return choose(r, "select", v, a, false, true, ret);
}
ig_status tfilter_reject(trun *r, tval v, const targs *a, tval *ret)
{
    return choose(r, "reject", v, a, false, false, ret);
}
ig_status tfilter_selectattr(trun *r, tval v, const targs *a, tval *ret)
{
    return choose(r, "selectattr", v, a, true, true, ret);
}
ig_status tfilter_rejectattr(trun *r, tval v, const targs *a, tval *ret)
{
    return choose(r, "rejectattr", v, a, true, false, ret);
}
