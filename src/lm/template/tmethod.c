/* tmethod.c: methods of dicts, lists, loops, cyclers, and how any method is called. Names that
 * Python has and this file has not are rows without a function: an error that names them, never a
 * silent "undefined". */
#include <string.h>
#include "lm/template/trun.h"

static ig_status dict_get(trun *r, tval self, const tval *v, tval *ret)
{
    const tval *found;
    TRY(tval_dict_find(r, self.dict, v[0], &found));
    *ret = found ? *found : v[1].kind == T_MISSING ? tval_none() : v[1];
    return IG_OK;
}

static ig_status view_of(trun *r, const tval *items, size_t n, bool trusted, tval *ret)
{
    tseq *s;
    TRY(tval_new_seq(r, SEQ_VIEW, n, trusted, &s));
    if (n) memcpy(s->items, items, n * sizeof *items);
    *ret = tval_seq(s);
    return IG_OK;
}

static ig_status dict_keys(trun *r, tval self, const tval *v, tval *ret)
{
    (void)v;
    return view_of(r, self.dict->keys, self.dict->n, self.dict->trusted, ret);
}

static ig_status dict_values(trun *r, tval self, const tval *v, tval *ret)
{
    (void)v;
    return view_of(r, self.dict->values, self.dict->n, self.dict->trusted, ret);
}

static ig_status dict_items(trun *r, tval self, const tval *v, tval *ret)
{
    const tdict *d = self.dict;
    tseq *view;
    (void)v;
    TRY(tval_new_seq(r, SEQ_VIEW, d->n, d->trusted, &view));
    for (size_t i = 0; i < d->n; i++) {
        tseq *pair;
        TRY(tval_new_seq(r, SEQ_TUPLE, 2, d->trusted, &pair));
        pair->items[0] = d->keys[i];
        pair->items[1] = d->values[i];
        view->items[i] = tval_seq(pair);
    }
    *ret = tval_seq(view);
    return IG_OK;
}

/* Values do not change, so a copy is the thing itself. */
static ig_status copy(trun *r, tval self, const tval *v, tval *ret)
{
    (void)r, (void)v;
    *ret = self;
    return IG_OK;
}

static ig_status seq_count(trun *r, tval self, const tval *v, tval *ret)
{
    int64_t n = 0;
    for (size_t i = 0; i < self.seq->n; i++) {
        bool equal;
        TRY(tval_equal(r, self.seq->items[i], v[0], &equal));
        n += equal;
    }
    *ret = tval_int(n, true);
    return IG_OK;
}

static ig_status seq_index(trun *r, tval self, const tval *v, tval *ret)
{
    for (size_t i = 0; i < self.seq->n; i++) {
        bool equal;
        TRY(tval_equal(r, self.seq->items[i], v[0], &equal));
        *ret = tval_int((int64_t)i, true);
        if (equal) return IG_OK;
    }
    return ig_fail(IG_EINVAL, "index: the %s does not hold the value", tval_type(self));
}

static ig_status loop_cycle(trun *r, tval self, const tval *v, tval *ret)
{
    const tseq *items = v[0].seq;
    (void)r;
    if (!items->n) return ig_fail(IG_EINVAL, "loop.cycle needs at least one value");
    *ret = items->items[(size_t)self.loop->index0 % items->n];
    return IG_OK;
}

static ig_status loop_changed(trun *r, tval self, const tval *v, tval *ret)
{
    bool equal = false;
    tloop *l = self.loop;
    if (l->changed.kind != T_MISSING) TRY(tval_equal(r, l->changed, v[0], &equal));
    l->changed = v[0];
    *ret = tval_bool(!equal);
    return IG_OK;
}

static ig_status cycler_next(trun *r, tval self, const tval *v, tval *ret)
{
    tcycler *c = self.cycler;
    (void)r, (void)v;
    *ret = c->items[c->at];
    c->at = (c->at + 1) % c->n;
    return IG_OK;
}

static ig_status cycler_reset(trun *r, tval self, const tval *v, tval *ret)
{
    (void)r, (void)v;
    self.cycler->at = 0;
    *ret = tval_none();
    return IG_OK;
}

#define REFUSED(name)                   \
    {                                   \
        name, NULL, "", 0, false, false \
    }
#define MUTATES(name)                  \
    {                                  \
        name, NULL, "", 0, false, true \
    }

static const tmethod_row dict_rows[] = {
    {"get", dict_get, "key default", 1, false, false},
    {"items", dict_items, "", 0, false, false},
    {"keys", dict_keys, "", 0, false, false},
    {"values", dict_values, "", 0, false, false},
    {"copy", copy, "", 0, false, false},
    REFUSED("fromkeys"),
    MUTATES("clear"),
    MUTATES("pop"),
    MUTATES("popitem"),
    MUTATES("setdefault"),
    MUTATES("update"),
};
static const tmethod_row list_rows[] = {
    {"count", seq_count, "value", 1, false, false},
    {"index", seq_index, "value", 1, false, false},
    {"copy", copy, "", 0, false, false},
    MUTATES("append"),
    MUTATES("clear"),
    MUTATES("extend"),
    MUTATES("insert"),
    MUTATES("pop"),
    MUTATES("remove"),
    MUTATES("reverse"),
    MUTATES("sort"),
};
static const tmethod_row tuple_rows[] = {
    {"count", seq_count, "value", 1, false, false},
    {"index", seq_index, "value", 1, false, false},
};
static const tmethod_row range_rows[] = {
    {"count", seq_count, "value", 1, false, false},
    {"index", seq_index, "value", 1, false, false},
    REFUSED("start"),
    REFUSED("stop"),
    REFUSED("step"),
};
static const tmethod_row loop_rows[] = {
    {"cycle", loop_cycle, NULL, 0, false, false},
    {"changed", loop_changed, NULL, 0, false, false},
};
static const tmethod_row cycler_rows[] = {
    {"next", cycler_next, "", 0, false, false},
    {"reset", cycler_reset, "", 0, false, false},
    REFUSED("current"),
    REFUSED("items"),
};
static const tmethod_row number_rows[] = {
    REFUSED("as_integer_ratio"), REFUSED("bit_count"),   REFUSED("bit_length"),
    REFUSED("conjugate"),        REFUSED("denominator"), REFUSED("from_bytes"),
    REFUSED("fromhex"),          REFUSED("hex"),         REFUSED("imag"),
    REFUSED("is_integer"),       REFUSED("numerator"),   REFUSED("real"),
    REFUSED("to_bytes"),
};
static const tmethod_row macro_rows[] = {
    REFUSED("name"),          REFUSED("arguments"), REFUSED("catch_kwargs"),
    REFUSED("catch_varargs"), REFUSED("caller"),
};

#define ROWS(table) (*ret_n = N_ELEM(table), table)
static const tmethod_row *rows_of(tval v, size_t *ret_n)
{
    *ret_n = 0;
    switch (v.kind) {
    case T_STR: *ret_n = tstrmethod_n_rows; return tstrmethod_rows;
    case T_DICT: return ROWS(dict_rows);
    case T_LOOP: return ROWS(loop_rows);
    case T_CYCLER: return ROWS(cycler_rows);
    case T_MACRO: return ROWS(macro_rows);
    case T_BOOL:
    case T_INT:
    case T_FLOAT: return ROWS(number_rows);
    case T_SEQ:
        if (v.seq->kind == SEQ_LIST) return ROWS(list_rows);
        if (v.seq->kind == SEQ_TUPLE) return ROWS(tuple_rows);
        if (v.seq->kind == SEQ_RANGE) return ROWS(range_rows);
        return NULL;
    default: return NULL;
    }
}

const tmethod_row *tmethod_find(tval self, const tstr *name)
{
    size_t n;
    const tmethod_row *rows = rows_of(self, &n);
    for (size_t i = 0; i < n; i++)
        if (tstr_is(name, rows[i].name)) return &rows[i];
    return NULL;
}

ig_status tmethod_mark(trun *r, tval *v)
{
    if (v->kind == T_STR && !v->s->markup) {
        tstr *s = arena_alloc(r->a, 1, sizeof *s);
        if (!s) return r->a->status;
        *s = *v->s;
        s->markup = true;
        v->s = s;
    }
    for (size_t i = 0; v->kind == T_SEQ && i < v->seq->n; i++)
        TRY(tmethod_mark(r, &v->seq->items[i]));
    return IG_OK;
}

ig_status tmethod_call(trun *r, const tmethod *m, const targs *args, tval *ret)
{
    tval v[TMETHOD_MAX_ARGS] = {{0}}; /* T_MISSING */
    const tmethod_row *row = m->row;
    bool markup = m->self.kind == T_STR && m->self.s->markup && row->wraps;
    if (m->self.kind == T_STR) TRY(tstr_flatten(r->a, m->self.s));
    if (!row->params) {
        tseq *all;
        if (args->n_named) return ig_fail(IG_EINVAL, "%s takes no named arguments", row->name);
        TRY(tval_new_seq(r, SEQ_TUPLE, args->n, true, &all));
        if (args->n) memcpy(all->items, args->v, args->n * sizeof *args->v);
        v[0] = tval_seq(all);
        return row->call(r, m->self, v, ret);
    }
    TRY(targs_bind(args, row->name, row->params, row->n_needed, v));
    for (size_t i = 0; markup && i < TMETHOD_MAX_ARGS; i++)
        if (v[i].kind == T_STR && !v[i].s->markup) TRY(ttext_escape(r, v[i].s, &v[i].s));
    TRY(row->call(r, m->self, v, ret));
    return markup ? tmethod_mark(r, ret) : IG_OK;
}
