/* tval.c: see tval.h. */
#include "lm/template/tval.h"
#include <string.h>
#include "lm/template/trun.h"

#define INDEXED_FROM 16 /* entries from which a dict's string keys are searched by halves */

const char *tval_type(tval v)
{
    static const char *const names[N_TKINDS] = {
        "nothing", "undefined", "NoneType", "bool",     "int",    "float", "str",    NULL,
        "dict",    "namespace", "macro",    "function", "method", "loop",  "cycler", "joiner"};
    static const char *const seqs[] = {"list", "tuple", "range", "dict view", "generator"};
    return v.kind == T_SEQ ? seqs[v.seq->kind] : names[v.kind];
}

ig_status tval_undefined(trun *r, str name, const char *owner, tval *ret)
{
    tundefined *u = arena_alloc(r->a, 1, sizeof *u);
    if (!u) return r->a->status;
    *u = (tundefined){name.p, name.n, owner};
    *ret = (tval){.kind = T_UNDEFINED, .undefined = u};
    return IG_OK;
}

ig_status tval_fail_undefined(tval v)
{
    const tundefined *u = v.undefined;
    int n = u->n_name > 200 ? 200 : (int)u->n_name;
    if (u->owner) return ig_fail(IG_EINVAL, "a %s has no '%.*s'", u->owner, n, u->name);
    return ig_fail(IG_EINVAL, "'%.*s' is undefined", n, u->name);
}

ig_status tval_new_str(trun *r, const char *p, size_t n, bool trusted, tval *ret)
{
    const tstr *s = tstr_new(r->a, p, n, trusted);
    if (!s) return r->a->status;
    *ret = tval_str(s);
    return IG_OK;
}

ig_status tval_new_seq(trun *r, tseq_kind kind, size_t n, bool trusted, tseq **ret)
{
    TRY(trun_charge(r, n));
    tseq *s = arena_alloc(r->a, 1, sizeof *s);
    tval *items = s ? arena_zero(r->a, n, sizeof *items) : NULL;
    if (!items) return r->a->status;
    *s = (tseq){.kind = kind, .trusted = trusted, .n = n, .items = items};
    *ret = s;
    return IG_OK;
}

ig_status tval_new_dict(trun *r, size_t cap, bool trusted, tdict **ret)
{
    tdict *d = arena_zero(r->a, 1, sizeof *d);
    if (!d) return r->a->status;
    d->trusted = trusted;
    d->keys = arena_alloc(r->a, cap, sizeof *d->keys);
    d->values = d->keys ? arena_alloc(r->a, cap, sizeof *d->values) : NULL;
    if (!d->values) return r->a->status;
    *ret = d;
    return IG_OK;
}

/* Keys of one dict are equal when Python's are: 1, 1.0 and True are one key. */
static bool keys_equal(tval a, tval b)
{
    if (a.kind == T_STR && b.kind == T_STR) return tstr_eq(a.s, b.s);
    if (tval_is_integral(a) && tval_is_integral(b)) return tval_integer(a) == tval_integer(b);
    if (tval_is_number(a) && tval_is_number(b)) return tval_number(a) == tval_number(b);
    return a.kind == T_NONE && b.kind == T_NONE;
}

static ig_status check_key(trun *r, tval key)
{
    if (key.kind == T_STR) return tstr_flatten(r->a, key.s);
    if (tval_is_number(key) || key.kind == T_NONE) return IG_OK;
    return ig_fail(IG_EINVAL, "a %s cannot be the key of a dict", tval_type(key));
}

ig_status tval_dict_set(trun *r, tdict *d, tval key, tval value)
{
    TRY(check_key(r, key));
    TRY(trun_charge(r, d->n));
    for (size_t i = 0; i < d->n; i++)
        if (keys_equal(d->keys[i], key)) {
            d->values[i] = value;
            return IG_OK;
        }
    d->keys[d->n] = key;
    d->values[d->n++] = value;
    return IG_OK;
}

/* Sorts positions by their string keys: merge sort, so that no input makes it slow. */
static void sort_positions(const tdict *d, uint32_t *p, uint32_t *other, size_t n)
{
    if (n < 2) return;
    size_t half = n / 2, i = 0, j = half, k = 0;
    sort_positions(d, p, other, half);
    sort_positions(d, p + half, other, n - half);
    while (i < half && j < n)
        other[k++] = tstr_cmp(d->keys[p[j]].s, d->keys[p[i]].s) < 0 ? p[j++] : p[i++];
    while (i < half) other[k++] = p[i++];
    while (j < n) other[k++] = p[j++];
    memcpy(p, other, n * sizeof *p);
}

static ig_status make_order(trun *r, tdict *d)
{
    TRY(trun_charge(r, 16 * d->n));
    uint32_t *p = arena_alloc(r->a, 2 * d->n, sizeof *p);
    if (!p) return r->a->status;
    for (size_t i = 0; i < d->n; i++)
        if (d->keys[i].kind == T_STR) p[d->n_order++] = (uint32_t)i;
    sort_positions(d, p, p + d->n, d->n_order);
    d->order = p;
    return IG_OK;
}

static const tval *find_ordered(const tdict *d, const tstr *key)
{
    size_t lo = 0, hi = d->n_order;
    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;
        int c = tstr_cmp(d->keys[d->order[mid]].s, key);
        if (!c) return &d->values[d->order[mid]];
        if (c < 0)
            lo = mid + 1;
        else
            hi = mid;
    }
    return NULL;
}

ig_status tval_dict_find(trun *r, tdict *d, tval key, const tval **ret)
{
    *ret = NULL;
    TRY(check_key(r, key));
    if (key.kind == T_STR && d->n >= INDEXED_FROM) {
        if (!d->order) TRY(make_order(r, d));
        *ret = find_ordered(d, key.s);
        return IG_OK;
    }
    TRY(trun_charge(r, d->n));
    for (size_t i = 0; i < d->n && !*ret; i++)
        if (keys_equal(d->keys[i], key)) *ret = &d->values[i];
    return IG_OK;
}

const tval *tval_space_find(const tspace *s, const tstr *name)
{
    for (size_t i = 0; i < s->n; i++)
        if (tstr_eq(s->names[i], name)) return &s->values[i];
    return NULL;
}

ig_status tval_space_set(trun *r, tspace *s, const tstr *name, tval value)
{
    TRY(trun_charge(r, s->n));
    tval *old = (tval *)tval_space_find(s, name);
    if (old) {
        *old = value;
        return IG_OK;
    }
    if (s->n == s->cap) {
        size_t cap = s->cap ? 2 * s->cap : 8;
        const tstr **names = arena_alloc(r->a, cap, sizeof *names);
        tval *values = names ? arena_alloc(r->a, cap, sizeof *values) : NULL;
        if (!values) return r->a->status;
        if (s->n) memcpy(names, s->names, s->n * sizeof *names);
        if (s->n) memcpy(values, s->values, s->n * sizeof *values);
        s->names = names;
        s->values = values;
        s->cap = cap;
    }
    s->names[s->n] = name;
    s->values[s->n++] = value;
    return IG_OK;
}

static ig_status array_of_json(trun *r, const json_t *j, bool trusted, tval *ret)
{
    tseq *s;
    TRY(tval_new_seq(r, SEQ_LIST, json_array_size(j), trusted, &s));
    for (size_t i = 0; i < s->n; i++)
        TRY(tval_of_json(r, json_array_get(j, i), trusted, &s->items[i]));
    *ret = tval_seq(s);
    return IG_OK;
}

static ig_status object_of_json(trun *r, const json_t *j, bool trusted, tval *ret)
{
    tdict *d;
    json_t *object = (json_t *)j; /* jansson's iterators are not const; nothing is changed */
    TRY(tval_new_dict(r, json_object_size(j), trusted, &d));
    TRY(trun_charge(r, json_object_size(j)));
    for (void *it = json_object_iter(object); it; it = json_object_iter_next(object, it)) {
        TRY(tval_new_str(r, json_object_iter_key(it), json_object_iter_key_len(it), trusted,
                         &d->keys[d->n]));
        TRY(tval_of_json(r, json_object_iter_value(it), trusted, &d->values[d->n]));
        d->n++;
    }
    *ret = tval_dict(d);
    return IG_OK;
}

ig_status tval_of_json(trun *r, const json_t *j, bool trusted, tval *ret)
{
    TRY(trun_enter(r));
    ig_status status = IG_OK;
    switch (json_typeof(j)) {
    case JSON_OBJECT: status = object_of_json(r, j, trusted, ret); break;
    case JSON_ARRAY: status = array_of_json(r, j, trusted, ret); break;
    case JSON_STRING:
        status = tval_new_str(r, json_string_value(j), json_string_length(j), trusted, ret);
        break;
    case JSON_INTEGER: *ret = tval_int(json_integer_value(j), trusted); break;
    case JSON_REAL: *ret = tval_float(json_real_value(j), trusted); break;
    case JSON_TRUE: *ret = tval_bool(true); break;
    case JSON_FALSE: *ret = tval_bool(false); break;
    case JSON_NULL: *ret = tval_none(); break;
    }
    trun_leave(r);
    return status;
}

bool tval_truth(tval v)
{
    switch (v.kind) {
    case T_MISSING:
    case T_UNDEFINED:
    case T_NONE: return false;
    case T_BOOL: return v.b;
    case T_INT: return v.i != 0;
    case T_FLOAT: return v.f != 0;
    case T_STR: return v.s->n != 0;
    case T_SEQ: return v.seq->kind == SEQ_GENERATOR || v.seq->n != 0;
    case T_DICT: return v.dict->n != 0;
    default: return true;
    }
}

static ig_status seqs_equal(trun *r, const tseq *a, const tseq *b, bool *ret)
{
    *ret = a == b;
    if (*ret || a->kind != b->kind || a->n != b->n || a->kind == SEQ_GENERATOR) return IG_OK;
    *ret = true;
    for (size_t i = 0; i < a->n && *ret; i++) TRY(tval_equal(r, a->items[i], b->items[i], ret));
    return IG_OK;
}

static ig_status dicts_equal(trun *r, tdict *a, tdict *b, bool *ret)
{
    *ret = a->n == b->n;
    for (size_t i = 0; i < a->n && *ret && a != b; i++) {
        const tval *other;
        TRY(tval_dict_find(r, b, a->keys[i], &other));
        *ret = other != NULL;
        if (other) TRY(tval_equal(r, a->values[i], *other, ret));
    }
    return IG_OK;
}

static ig_status same_kind_equal(trun *r, tval a, tval b, bool *ret)
{
    switch (a.kind) {
    case T_STR:
        TRY(tstr_flatten(r->a, a.s));
        TRY(tstr_flatten(r->a, b.s));
        *ret = tstr_eq(a.s, b.s);
        return trun_charge(r, a.s->n < b.s->n ? a.s->n : b.s->n);
    case T_SEQ: return seqs_equal(r, a.seq, b.seq, ret);
    case T_DICT: return dicts_equal(r, a.dict, b.dict, ret);
    case T_UNDEFINED:
    case T_NONE: *ret = true; return IG_OK;
    case T_METHOD: *ret = a.method->row == b.method->row; return IG_OK;
    default: *ret = a.space == b.space; return IG_OK; /* identity: all of these are pointers */
    }
}

ig_status tval_equal(trun *r, tval a, tval b, bool *ret)
{
    TRY(trun_enter(r));
    ig_status status = IG_OK;
    *ret = false;
    if (tval_is_integral(a) && tval_is_integral(b))
        *ret = tval_integer(a) == tval_integer(b);
    else if (tval_is_number(a) && tval_is_number(b))
        *ret = tval_number(a) == tval_number(b);
    else if (a.kind == b.kind)
        status = same_kind_equal(r, a, b, ret);
    trun_leave(r);
    return status;
}

static ig_status order_seqs(trun *r, const tseq *a, const tseq *b, int *ret)
{
    for (size_t i = 0; i < a->n && i < b->n; i++) {
        bool equal;
        TRY(tval_equal(r, a->items[i], b->items[i], &equal));
        if (!equal) return tval_order(r, a->items[i], b->items[i], ret);
    }
    *ret = a->n < b->n ? -1 : a->n > b->n;
    return IG_OK;
}

ig_status tval_order(trun *r, tval a, tval b, int *ret)
{
    if (a.kind == T_UNDEFINED) return tval_fail_undefined(a);
    if (b.kind == T_UNDEFINED) return tval_fail_undefined(b);
    if (tval_is_integral(a) && tval_is_integral(b)) {
        int64_t x = tval_integer(a), y = tval_integer(b);
        *ret = x < y ? -1 : x > y;
        return IG_OK;
    }
    if (tval_is_number(a) && tval_is_number(b)) {
        double x = tval_number(a), y = tval_number(b);
        *ret = x < y ? -1 : x > y ? 1 : x == y ? 0 : 2;
        return IG_OK;
    }
    if (a.kind == T_STR && b.kind == T_STR) {
        TRY(tstr_flatten(r->a, a.s));
        TRY(tstr_flatten(r->a, b.s));
        int c = tstr_cmp(a.s, b.s);
        *ret = c < 0 ? -1 : c > 0;
        return trun_charge(r, a.s->n < b.s->n ? a.s->n : b.s->n);
    }
    if (a.kind == T_SEQ && b.kind == T_SEQ && a.seq->kind == b.seq->kind &&
        a.seq->kind <= SEQ_TUPLE) {
        TRY(trun_enter(r));
        ig_status status = order_seqs(r, a.seq, b.seq, ret);
        trun_leave(r);
        return status;
    }
    return ig_fail(IG_EINVAL, "a %s and a %s have no order", tval_type(a), tval_type(b));
}

ig_status tval_len(trun *r, tval v, int64_t *ret)
{
    switch (v.kind) {
    case T_UNDEFINED: *ret = 0; return IG_OK;
    case T_STR:
        TRY(tstr_flatten(r->a, v.s));
        TRY(trun_charge(r, v.s->n_chars == SIZE_MAX ? v.s->n : 0));
        *ret = (int64_t)tstr_chars(v.s);
        return IG_OK;
    case T_DICT: *ret = (int64_t)v.dict->n; return IG_OK;
    case T_SEQ:
        if (v.seq->kind == SEQ_GENERATOR) break;
        *ret = (int64_t)v.seq->n;
        return IG_OK;
    case T_LOOP: return trun_loop_length(r, v.loop, ret);
    default: break;
    }
    return ig_fail(IG_EINVAL, "a %s has no length", tval_type(v));
}

ig_status tval_in(trun *r, tval item, tval container, bool *ret)
{
    const tval *found;
    const tseq *items;
    if (container.kind == T_STR) {
        if (item.kind == T_UNDEFINED || item.kind != T_STR)
            return ig_fail(IG_EINVAL, "'in <string>' wants a string on its left, not a %s",
                           tval_type(item));
        TRY(tstr_flatten(r->a, item.s));
        TRY(tstr_flatten(r->a, container.s));
        *ret = tstr_find(container.s, item.s, 0) != SIZE_MAX;
        return trun_charge(r, container.s->n);
    }
    if (container.kind == T_DICT) {
        TRY(tval_dict_find(r, container.dict, item, &found));
        *ret = found != NULL;
        return IG_OK;
    }
    TRY(tval_iterate(r, container, &items));
    *ret = false;
    for (size_t i = 0; i < items->n && !*ret; i++) TRY(tval_equal(r, items->items[i], item, ret));
    return trun_charge(r, items->n);
}

bool tval_is_iterable(tval v)
{
    return v.kind == T_UNDEFINED || v.kind == T_STR || v.kind == T_SEQ || v.kind == T_DICT ||
           v.kind == T_LOOP;
}

static ig_status iterate_str(trun *r, const tstr *s, tseq **ret)
{
    size_t n = 0;
    TRY(tstr_flatten(r->a, s));
    TRY(tval_new_seq(r, SEQ_LIST, tstr_chars(s), true, ret));
    for (tchars it = tchars_of(s); tchars_next(&it);) {
        TRY(tval_new_str(r, s->p + it.at, it.next - it.at, it.trusted, &(*ret)->items[n++]));
    }
    return IG_OK;
}

ig_status tval_iterate(trun *r, tval v, const tseq **ret)
{
    tseq *s;
    switch (v.kind) {
    case T_SEQ:
        *ret = v.seq;
        if (v.seq->kind != SEQ_GENERATOR) return IG_OK;
        TRY(tval_new_seq(r, SEQ_LIST, v.seq->n - v.seq->at, v.seq->trusted, &s));
        memcpy(s->items, v.seq->items + v.seq->at, s->n * sizeof *s->items);
        v.seq->at = v.seq->n;
        break;
    case T_DICT:
        TRY(tval_new_seq(r, SEQ_LIST, v.dict->n, v.dict->trusted, &s));
        memcpy(s->items, v.dict->keys, s->n * sizeof *s->items);
        break;
    case T_STR: TRY(iterate_str(r, v.s, &s)); break;
    case T_UNDEFINED: TRY(tval_new_seq(r, SEQ_LIST, 0, true, &s)); break;
    default: return ig_fail(IG_EINVAL, "a %s cannot be iterated", tval_type(v));
    }
    *ret = s;
    return IG_OK;
}

typedef struct sorting {
    const tval *keys;
    uint32_t *p, *other;
    bool reverse;
} sorting;

static ig_status merge_sort(trun *r, const sorting *s, size_t from, size_t n)
{
    if (n < 2) return IG_OK;
    size_t half = n / 2, i = from, j = from + half, k = from, end = from + n;
    TRY(merge_sort(r, s, from, half));
    TRY(merge_sort(r, s, from + half, n - half));
    TRY(trun_charge(r, 4 * n));
    while (i < from + half && j < end) {
        int c;
        TRY(tval_order(r, s->keys[s->p[j]], s->keys[s->p[i]], &c));
        s->other[k++] = (s->reverse ? c == 1 : c < 0) ? s->p[j++] : s->p[i++];
    }
    while (i < from + half) s->other[k++] = s->p[i++];
    while (j < end) s->other[k++] = s->p[j++];
    memcpy(s->p + from, s->other + from, n * sizeof *s->p);
    return IG_OK;
}

ig_status tval_sort(trun *r, tval *items, const tval *keys, size_t n, bool reverse)
{
    uint32_t *p = arena_alloc(r->a, 2 * n, sizeof *p);
    tval *sorted = p ? arena_alloc(r->a, n, sizeof *sorted) : NULL;
    if (!sorted) return r->a->status;
    for (size_t i = 0; i < n; i++) p[i] = (uint32_t)i;
    TRY(merge_sort(r, &(sorting){keys, p, p + n, reverse}, 0, n));
    for (size_t i = 0; i < n; i++) sorted[i] = items[p[i]];
    if (n) memcpy(items, sorted, n * sizeof *items);
    return IG_OK;
}
