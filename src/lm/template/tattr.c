/* tattr.c: v.name, v[index] and v[from:to:step], with the fall-backs of Jinja's sandbox: an
 * attribute that is missing is looked up as an item and the other way round; what is not there is
 * undefined, not an error (a slice that makes no sense is one); methods that would change a list or
 * a dict are as good as missing. */
#include <string.h>
#include "lm/template/trun.h"

static ig_status missing(trun *r, tval v, const tstr *name, tval *ret)
{
    return tval_undefined(r, tstr_bytes(name), tval_type(v), ret);
}

/* Fields of `loop`. */
static ig_status loop_field(trun *r, tloop *l, const tstr *name, bool *ret_found, tval *ret)
{
    int64_t length = 0;
    bool more = false;
    *ret_found = true;
    if (tstr_is(name, "index") || tstr_is(name, "index0")) {
        *ret = tval_int(l->index0 + tstr_is(name, "index"), true);
    } else if (tstr_is(name, "first")) {
        *ret = tval_bool(l->index0 == 0);
    } else if (tstr_is(name, "last")) {
        TRY(trun_loop_peek(r, l, &more));
        *ret = tval_bool(!more);
    } else if (tstr_is(name, "length") || tstr_is(name, "revindex") || tstr_is(name, "revindex0")) {
        TRY(trun_loop_length(r, l, &length));
        if (tstr_is(name, "revindex")) length -= l->index0;
        if (tstr_is(name, "revindex0")) length -= l->index0 + 1;
        *ret = tval_int(length, true);
    } else if (tstr_is(name, "depth") || tstr_is(name, "depth0")) {
        *ret = tval_int(tstr_is(name, "depth"), true);
    } else if (tstr_is(name, "previtem")) {
        *ret = l->before;
        if (l->index0 == 0) return tval_undefined(r, str_of("previous item"), "loop", ret);
    } else if (tstr_is(name, "nextitem")) {
        TRY(trun_loop_peek(r, l, &more));
        *ret = l->after;
        if (!more) return tval_undefined(r, str_of("next item"), "loop", ret);
    } else {
        *ret_found = false;
    }
    return IG_OK;
}

/* Python's getattr. */
static ig_status attribute(trun *r, tval v, const tstr *name, bool *ret_found, tval *ret)
{
    *ret_found = false;
    if (v.kind == T_NAMESPACE) {
        const tval *found = tval_space_find(v.space, name);
        *ret_found = found != NULL;
        if (found) *ret = *found;
        return IG_OK;
    }
    if (v.kind == T_LOOP) {
        TRY(loop_field(r, v.loop, name, ret_found, ret));
        if (*ret_found) return IG_OK;
    }
    const tmethod_row *row = tmethod_find(v, name);
    if (!row) return IG_OK;
    *ret_found = true;
    if (row->mutates) return missing(r, v, name, ret);
    if (!row->call)
        return ig_fail(IG_EUNSUPPORTED, "the attribute %s of a %s", row->name, tval_type(v));
    tmethod *m = arena_alloc(r->a, 1, sizeof *m);
    if (!m) return r->a->status;
    *m = (tmethod){.self = v, .row = row};
    *ret = (tval){.kind = T_METHOD, .method = m};
    return IG_OK;
}

/* Python's v[index]. */
static ig_status item(trun *r, tval v, tval index, bool *ret_found, tval *ret)
{
    *ret_found = false;
    if (v.kind == T_DICT) {
        const tval *found;
        bool hashable = index.kind == T_STR || tval_is_number(index) || index.kind == T_NONE;
        if (!hashable) return IG_OK;
        TRY(tval_dict_find(r, v.dict, index, &found));
        *ret_found = found != NULL;
        if (found) *ret = *found;
        return IG_OK;
    }
    if (!tval_is_integral(index)) return IG_OK;
    bool is_str = v.kind == T_STR, is_seq = v.kind == T_SEQ && v.seq->kind <= SEQ_RANGE;
    if (!is_str && !is_seq) return IG_OK;
    int64_t i = tval_integer(index), n;
    TRY(tval_len(r, v, &n));
    if (i < 0) i += n;
    if (i < 0 || i >= n) return IG_OK;
    *ret_found = true;
    if (is_seq) {
        *ret = v.seq->items[i];
        return IG_OK;
    }
    size_t from = tstr_offset(v.s, (size_t)i);
    uint32_t cp;
    TRY(trun_charge(r, from));
    const tstr *s =
        tstr_sub(r->a, v.s, from, from + utf8_decode(v.s->p + from, v.s->n - from, &cp));
    if (!s) return r->a->status;
    *ret = tval_str(s);
    return IG_OK;
}

ig_status tattr_get(trun *r, tval v, const tstr *name, tval *ret)
{
    tval key = tval_str(name);
    bool found;
    if (v.kind == T_UNDEFINED) return tval_fail_undefined(v);
    TRY(attribute(r, v, name, &found, ret));
    if (!found) TRY(item(r, v, key, &found, ret));
    return found ? IG_OK : missing(r, v, name, ret);
}

ig_status tattr_only(trun *r, tval v, const tstr *name, tval *ret)
{
    bool found;
    if (v.kind == T_UNDEFINED) return tval_fail_undefined(v);
    TRY(attribute(r, v, name, &found, ret));
    return found ? IG_OK : missing(r, v, name, ret);
}

ig_status tattr_item(trun *r, tval v, tval index, tval *ret)
{
    bool found;
    if (v.kind == T_UNDEFINED) return tval_fail_undefined(v);
    if (index.kind == T_STR) TRY(tstr_flatten(r->a, index.s));
    TRY(item(r, v, index, &found, ret));
    if (!found && index.kind == T_STR) TRY(attribute(r, v, index.s, &found, ret));
    if (found) return IG_OK;
    if (index.kind == T_STR) return missing(r, v, index.s, ret);
    return tval_undefined(r, str_of("such item"), tval_type(v), ret);
}

/* A bound of a slice: moved into [low, high]. False where it is no integer. */
static bool bound(tval v, int64_t n, int64_t low, int64_t high, int64_t dflt, int64_t *ret)
{
    *ret = dflt;
    if (v.kind == T_NONE) return true;
    if (!tval_is_integral(v)) return false;
    int64_t i = tval_integer(v);
    if (i < 0 && __builtin_add_overflow(i, n, &i)) i = low;
    *ret = i < low ? low : i > high ? high : i;
    return true;
}

/* Python's slice.indices: the first item, the step and how many. */
static ig_status indices(size_t size, tval from, tval to, tval step, bool *ret_valid,
                         int64_t *ret_from, int64_t *ret_step, size_t *ret_n)
{
    int64_t n = (int64_t)size, by = 1, first = 0, end = 0;
    *ret_valid = step.kind == T_NONE || tval_is_integral(step);
    if (!*ret_valid) return IG_OK;
    if (step.kind != T_NONE) by = tval_integer(step);
    if (by == 0) return ig_fail(IG_EINVAL, "the step of a slice is 0");
    if (by < -INT32_MAX) by = -INT32_MAX; /* no string or list is that long */
    if (by > INT32_MAX) by = INT32_MAX;
    int64_t low = by < 0 ? -1 : 0, high = by < 0 ? n - 1 : n;
    *ret_valid = bound(from, n, low, high, by < 0 ? high : low, &first) &&
                 bound(to, n, low, high, by < 0 ? low : high, &end);
    *ret_from = first;
    *ret_step = by;
    *ret_n = 0;
    if (by > 0 && first < end) *ret_n = (size_t)((end - first - 1) / by + 1);
    if (by < 0 && end < first) *ret_n = (size_t)((first - end - 1) / -by + 1);
    return IG_OK;
}

static ig_status slice_str(trun *r, const tstr *s, int64_t from, int64_t step, size_t n, tval *ret)
{
    AUTO(tbuild) b = {0};
    const tstr *made;
    TRY(trun_charge(r, s->n));
    if (step == 1) {
        size_t start = tstr_offset(s, (size_t)from);
        size_t end = n ? tstr_offset(s, (size_t)from + n) : start;
        made = tstr_sub(r->a, s, start, end);
        if (!made) return r->a->status;
        *ret = tval_str(made);
        return IG_OK;
    }
    AUTO(mem_ptr) memory = mem_alloc((tstr_chars(s) + 1) * sizeof(size_t));
    size_t *offsets = memory, k = 0;
    if (!offsets) return IG_ENOMEM;
    for (tchars it = tchars_of(s); tchars_next(&it);) offsets[k++] = it.at;
    offsets[k] = s->n;
    tbuild_init(&b, r->limits.max_output);
    for (size_t i = 0; i < n; i++, from += step)
        tbuild_sub(&b, s, offsets[from], offsets[from + 1]);
    TRY(tbuild_take(&b, r->a, &made));
    *ret = tval_str(made);
    return IG_OK;
}

ig_status tattr_slice(trun *r, tval v, tval from, tval to, tval step, tval *ret)
{
    int64_t first = 0, by = 1, size;
    size_t n = 0;
    bool valid = v.kind == T_STR || (v.kind == T_SEQ && v.seq->kind <= SEQ_RANGE);
    if (v.kind == T_UNDEFINED) return tval_fail_undefined(v);
    if (valid) {
        TRY(tval_len(r, v, &size));
        TRY(indices((size_t)size, from, to, step, &valid, &first, &by, &n));
    }
    if (!valid)
        return ig_fail(IG_EINVAL, "a %s cannot be cut with a slice like this", tval_type(v));
    if (v.kind == T_STR) return slice_str(r, v.s, first, by, n, ret);
    tseq *s;
    TRY(tval_new_seq(r, v.seq->kind, n, v.seq->trusted, &s));
    for (size_t i = 0; i < n; i++, first += by) s->items[i] = v.seq->items[first];
    *ret = tval_seq(s);
    return IG_OK;
}
