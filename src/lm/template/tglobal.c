/* tglobal.c: the functions that a template finds without anybody passing them. */
#include <string.h>
#include "lm/template/trun.h"

#define MAX_RANGE 100000 /* of jinja's sandbox */

struct tfunction {
    const char *name;
    ig_status (*call)(trun *r, const targs *args, tval *ret);
};

static ig_status range(trun *r, const targs *args, tval *ret)
{
    tval v[3] = {{0}};
    int64_t a = 0, b, step;
    tseq *s;
    TRY(targs_bind(args, "range", "start stop step", 1, v));
    for (size_t i = 0; i < 3; i++)
        if (v[i].kind != T_MISSING && !tval_is_integral(v[i]))
            return ig_fail(IG_EINVAL, "range wants integers");
    b = tval_integer(v[0]);
    if (v[1].kind != T_MISSING) a = b, b = tval_integer(v[1]);
    step = v[2].kind == T_MISSING ? 1 : tval_integer(v[2]);
    if (step == 0) return ig_fail(IG_EINVAL, "the step of a range is 0");
    __int128 span = (__int128)b - a,
             n = step > 0 ? (span + step - 1) / step : (span + step + 1) / step;
    if (step > 0 ? span <= 0 : span >= 0) n = 0;
    if (n > MAX_RANGE) return ig_fail(IG_ELIMIT, "a range of more than %d items", MAX_RANGE);
    TRY(tval_new_seq(r, SEQ_RANGE, (size_t)n, true, &s));
    for (size_t i = 0; i < s->n; i++) s->items[i] = tval_int(a + (int64_t)i * step, true);
    *ret = tval_seq(s);
    return IG_OK;
}

/* dict(mapping, a=1), also the start of namespace(mapping, a=1). */
static ig_status dict(trun *r, const targs *args, tval *ret)
{
    tdict *d;
    const tdict *from = args->n ? args->v[0].dict : NULL;
    if (args->n > 1) return ig_fail(IG_EINVAL, "dict takes at most 1 positional argument");
    if (args->n && args->v[0].kind != T_DICT)
        return ig_fail(IG_EUNSUPPORTED, "dict of a %s", tval_type(args->v[0]));
    TRY(tval_new_dict(r, args->n_named + (from ? from->n : 0), true, &d));
    for (size_t i = 0; from && i < from->n; i++)
        TRY(tval_dict_set(r, d, from->keys[i], from->values[i]));
    for (size_t i = 0; i < args->n_named; i++)
        TRY(tval_dict_set(r, d, tval_str(args->names[i]), args->named[i]));
    *ret = tval_dict(d);
    return IG_OK;
}

static ig_status namespace_of(trun *r, const targs *args, tval *ret)
{
    tval start;
    TRY(dict(r, args, &start));
    tspace *s = arena_zero(r->a, 1, sizeof *s);
    if (!s) return r->a->status;
    for (size_t i = 0; i < start.dict->n; i++) {
        const tstr *name;
        TRY(targs_str(r, "namespace", start.dict->keys[i], &name));
        TRY(tval_space_set(r, s, name, start.dict->values[i]));
    }
    *ret = (tval){.kind = T_NAMESPACE, .space = s};
    return IG_OK;
}

static ig_status cycler(trun *r, const targs *args, tval *ret)
{
    if (!args->n || args->n_named) return ig_fail(IG_EINVAL, "cycler wants one value or more");
    tcycler *c = arena_zero(r->a, 1, sizeof *c);
    tval *items = c ? arena_alloc(r->a, args->n, sizeof *items) : NULL;
    if (!items) return r->a->status;
    memcpy(items, args->v, args->n * sizeof *items);
    *c = (tcycler){.n = args->n, .items = items};
    *ret = (tval){.kind = T_CYCLER, .cycler = c};
    return IG_OK;
}

static ig_status joiner(trun *r, const targs *args, tval *ret)
{
    tval v[1] = {{0}};
    TRY(targs_bind(args, "joiner", "sep", 0, v));
    tjoiner *j = arena_zero(r->a, 1, sizeof *j);
    if (!j) return r->a->status;
    j->separator = tstr_of(r->a, ", ");
    if (!j->separator) return r->a->status;
    if (v[0].kind != T_MISSING) TRY(targs_str(r, "joiner", v[0], &j->separator));
    *ret = (tval){.kind = T_JOINER, .joiner = j};
    return IG_OK;
}

static ig_status raise_exception(trun *r, const targs *args, tval *ret)
{
    tval v[1] = {{0}};
    const tstr *message;
    (void)ret;
    TRY(targs_bind(args, "raise_exception", "message", 1, v));
    TRY(ttext_of(r, v[0], &message));
    return ig_fail(IG_EINVAL, "the template refuses this conversation: %.*s",
                   message->n > 700 ? 700 : (int)message->n, message->p);
}

/* --- strftime_now: English names, whatever the locale */

static int days_before(const struct tdate *d)
{
    static const int before[] = {0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334};
    bool leap = (d->year % 4 == 0 && d->year % 100 != 0) || d->year % 400 == 0;
    return before[d->month - 1] + d->day - 1 + (leap && d->month > 2);
}

static int weekday(const struct tdate *d) /* 0: Sunday */
{
    int y = d->year - 1;
    return (1 + y * 365 + y / 4 - y / 100 + y / 400 + days_before(d)) % 7;
}

static void add_date(tbuild *b, const struct tdate *d, const char *format);

static void add_number(tbuild *b, int n, int digits, bool pad)
{
    char text[8];
    for (int i = digits - 1; i >= 0; i--, n /= 10) text[i] = (char)('0' + n % 10);
    int skip = 0;
    while (!pad && skip < digits - 1 && text[skip] == '0') skip++;
    tbuild_add(b, text + skip, (size_t)(digits - skip), true);
}

static const char *const day_names[] = {"Sunday",   "Monday", "Tuesday", "Wednesday",
                                        "Thursday", "Friday", "Saturday"};
static const char *const month_names[] = {"January",   "February", "March",    "April",
                                          "May",       "June",     "July",     "August",
                                          "September", "October",  "November", "December"};

/* One conversion; false when it is not known. */
static bool add_field(tbuild *b, const struct tdate *d, char c, bool pad)
{
    int hour12 = d->hour % 12 ? d->hour % 12 : 12;
    switch (c) {
    case 'a': tbuild_add(b, day_names[weekday(d)], 3, true); return true;
    case 'A': tbuild_text(b, day_names[weekday(d)], true); return true;
    case 'b':
    case 'h': tbuild_add(b, month_names[d->month - 1], 3, true); return true;
    case 'B': tbuild_text(b, month_names[d->month - 1], true); return true;
    case 'd': add_number(b, d->day, 2, pad); return true;
    case 'D': add_date(b, d, "%m/%d/%y"); return true;
    case 'F': add_date(b, d, "%Y-%m-%d"); return true;
    case 'H': add_number(b, d->hour, 2, pad); return true;
    case 'I': add_number(b, hour12, 2, pad); return true;
    case 'j': add_number(b, days_before(d) + 1, 3, pad); return true;
    case 'm': add_number(b, d->month, 2, pad); return true;
    case 'M': add_number(b, d->minute, 2, pad); return true;
    case 'p': tbuild_text(b, d->hour < 12 ? "AM" : "PM", true); return true;
    case 'S': add_number(b, d->second, 2, pad); return true;
    case 'T': add_date(b, d, "%H:%M:%S"); return true;
    case 'u': add_number(b, weekday(d) ? weekday(d) : 7, 1, true); return true;
    case 'w': add_number(b, weekday(d), 1, true); return true;
    case 'y': add_number(b, d->year % 100, 2, pad); return true;
    case 'Y': add_number(b, d->year, 4, pad); return true;
    case '%': tbuild_text(b, "%", true); return true;
    default: return false;
    }
}

/* A format of our own: every conversion in it is known. */
static void add_date(tbuild *b, const struct tdate *d, const char *format)
{
    for (; *format; format++) {
        if (*format == '%')
            add_field(b, d, *++format, true);
        else
            tbuild_add(b, format, 1, true);
    }
}

static ig_status strftime_now(trun *r, const targs *args, tval *ret)
{
    AUTO(tbuild) b = {0};
    tval v[1] = {{0}};
    const tstr *format, *made;
    TRY(targs_bind(args, "strftime_now", "format", 1, v));
    TRY(targs_str(r, "strftime_now", v[0], &format));
    if (!r->has_date)
        return ig_fail(IG_EINVAL, "the template asks for the date and none was given");
    tbuild_init(&b, r->limits.max_output);
    for (size_t i = 0; i < format->n; i++) {
        if (format->p[i] != '%') {
            tbuild_sub(&b, format, i, i + 1);
            continue;
        }
        bool pad = !(i + 1 < format->n && format->p[i + 1] == '-');
        i += pad ? 1 : 2;
        if (i >= format->n || !add_field(&b, &r->date, format->p[i], pad))
            return ig_fail(IG_EUNSUPPORTED, "strftime_now: this conversion in the format");
    }
    TRY(tbuild_take(&b, r->a, &made));
    *ret = tval_str(made);
    return IG_OK;
}

static const tfunction functions[] = {
    {"range", range},
    {"dict", dict},
    {"namespace", namespace_of},
    {"cycler", cycler},
    {"joiner", joiner},
    {"raise_exception", raise_exception},
    {"strftime_now", strftime_now},
};

const tfunction *tglobal_find(str name)
{
    for (size_t i = 0; i < N_ELEM(functions); i++)
        if (str_eq(name, str_of(functions[i].name))) return &functions[i];
    return NULL;
}

ig_status tglobal_call(trun *r, const tfunction *f, const targs *args, tval *ret)
{
    return f->call(r, args, ret);
}
