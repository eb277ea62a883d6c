/* template.c: what a rendering gets from outside, and what it gives back (contract in template.h;
 * the interpreter is in template/). */
#include "lm/template.h"
#include <string.h>
#include "lm/template/trun.h"

static const template_limits defaults = {4000000, 500, (size_t)16 << 20, (size_t)256 << 20};
static const char *const default_roles[] = {"system", "developer", "user", "assistant", "tool"};
static const char *const own_names[] = {
    "messages", "tools", "documents", "add_generation_prompt", "bos_token", "eos_token"};

static template_limits limits_of(const template_limits *l)
{
    return (template_limits){
        l->max_steps > 0 ? l->max_steps : defaults.max_steps,
        l->max_depth > 0 ? l->max_depth : defaults.max_depth,
        l->max_output ? l->max_output : defaults.max_output,
        l->max_memory ? l->max_memory : defaults.max_memory,
    };
}

static bool two_digits(const char *p, int lo, int hi, int *ret)
{
    if (p[0] < '0' || p[0] > '9' || p[1] < '0' || p[1] > '9') return false;
    *ret = (p[0] - '0') * 10 + p[1] - '0';
    return *ret >= lo && *ret <= hi;
}

/* "2026-11-29" or "2026-11-29T13:14:15". */
static bool read_date(const char *text, struct tdate *ret)
{
    static const int days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    size_t n = strlen(text);
    int century, year;
    if ((n != 10 && n != 19) || text[4] != '-' || text[7] != '-') return false;
    if (!two_digits(text, 0, 99, &century) || !two_digits(text + 2, 0, 99, &year)) return false;
    if (!two_digits(text + 5, 1, 12, &ret->month) || !two_digits(text + 8, 1, 31, &ret->day))
        return false;
    ret->year = century * 100 + year;
    bool leap = (ret->year % 4 == 0 && ret->year % 100 != 0) || ret->year % 400 == 0;
    if (ret->year < 1 || ret->day > days[ret->month - 1] + (leap && ret->month == 2)) return false;
    if (n == 10) return true;
    return text[10] == 'T' && text[13] == ':' && text[16] == ':' &&
           two_digits(text + 11, 0, 23, &ret->hour) && two_digits(text + 14, 0, 59, &ret->minute) &&
           two_digits(text + 17, 0, 59, &ret->second);
}

/* A role that the caller vouches for is the template's text: templates make control tokens of
 * it. */
static ig_status trust_roles(trun *r, const template_input *in, tval messages)
{
    const char *const *roles = in->roles ? in->roles : default_roles;
    size_t n_roles = in->roles ? in->n_roles : N_ELEM(default_roles);
    const tstr *name = tstr_of(r->a, "role");
    if (!name) return r->a->status;
    for (size_t i = 0; i < messages.seq->n; i++) {
        const tval *role;
        TRY(tval_dict_find(r, messages.seq->items[i].dict, tval_str(name), &role));
        for (size_t k = 0; role && role->kind == T_STR && k < n_roles; k++) {
            if (!tstr_is(role->s, roles[k])) continue;
            tstr *trusted = tstr_new(r->a, role->s->p, role->s->n, true);
            if (!trusted) return r->a->status;
            *(tval *)role =
                tval_str(trusted); /* this rendering's own value, not seen by anybody yet */
            break;
        }
    }
    return IG_OK;
}

static ig_status read_messages(trun *r, const template_input *in, tval *ret)
{
    if (!json_is_array(in->messages)) return ig_fail(IG_EINVAL, "messages: expected an array");
    for (size_t i = 0; i < json_array_size(in->messages); i++)
        if (!json_is_object(json_array_get(in->messages, i)))
            return ig_fail(IG_EINVAL, "messages[%zu]: expected an object", i);
    TRY(tval_of_json(r, in->messages, false, ret));
    return trust_roles(r, in, *ret);
}

static ig_status token_text(trun *r, const char *name, const char *text, tval *ret)
{
    if (!text) return tval_undefined(r, str_of(name), NULL, ret);
    if (!utf8_valid(text, strlen(text))) return ig_fail(IG_EINVAL, "%s: not valid UTF-8", name);
    return tval_new_str(r, text, strlen(text), true, ret);
}

/* The value of a variable that the template mentions; T_MISSING: not passed. */
static ig_status variable(trun *r, const template_input *in, const tstr *name, tval *ret)
{
    *ret = tval_missing();
    if (tstr_is(name, "messages")) return read_messages(r, in, ret);
    if (tstr_is(name, "bos_token")) return token_text(r, "bos_token", in->bos_token, ret);
    if (tstr_is(name, "eos_token")) return token_text(r, "eos_token", in->eos_token, ret);
    if (tstr_is(name, "add_generation_prompt")) *ret = tval_bool(in->add_generation_prompt);
    const json_t *list = tstr_is(name, "tools") ? in->tools : in->documents;
    if (tstr_is(name, "tools") || tstr_is(name, "documents")) {
        *ret = tval_none();
        return list ? tval_of_json(r, list, false, ret) : IG_OK;
    }
    if (ret->kind != T_MISSING) return IG_OK;
    const json_t *v = in->kwargs ? json_object_getn(in->kwargs, name->p, name->n) : NULL;
    if (v) return tval_of_json(r, v, false, ret);
    v = in->constants ? json_object_getn(in->constants, name->p, name->n) : NULL;
    return v ? tval_of_json(r, v, true, ret) : IG_OK;
}

static ig_status check_input(const template_input *in)
{
    if (in->tools && !json_is_array(in->tools))
        return ig_fail(IG_EINVAL, "tools: expected an array");
    if (in->documents && !json_is_array(in->documents))
        return ig_fail(IG_EINVAL, "documents: expected an array");
    if (in->kwargs && !json_is_object(in->kwargs))
        return ig_fail(IG_EINVAL, "template variables: expected an object");
    if (in->constants && !json_is_object(in->constants))
        return ig_fail(IG_EINVAL, "template constants: expected an object");
    for (size_t i = 0; i < N_ELEM(own_names); i++)
        if (in->kwargs && json_object_get(in->kwargs, own_names[i]))
            return ig_fail(IG_EINVAL, "template variables: %s cannot be set this way",
                           own_names[i]);
    return IG_OK;
}

static ig_status bind_variables(trun *r, const template_input *in)
{
    TRY(check_input(in));
    TRY(trun_push_scope(r, NULL));
    for (uint32_t i = 0; i < r->t->n_names; i++) {
        tval v;
        TRY(variable(r, in, r->t->names[i], &v));
        if (v.kind != T_MISSING) TRY(trun_bind(r, r->scope, i, v));
    }
    return IG_OK;
}

static ig_status give_output(tbuild *b, template_output *ret)
{
    TRY(tbuild_status(b));
    AUTO(mem_ptr) memory = mem_alloc(b->n_spans * sizeof(template_span));
    template_span *spans = memory;
    if (!spans) return IG_ENOMEM;
    for (size_t i = 0; i < b->n_spans; i++) {
        size_t start = i ? b->spans[i - 1].end : 0;
        spans[i] = (template_span){start, b->spans[i].end - start, b->spans[i].trusted};
    }
    size_t n = b->bytes.n;
    char *text = buf_take(&b->bytes);
    if (!text) return IG_ENOMEM;
    *ret = (template_output){text, n, spans, b->n_spans};
    memory = NULL;
    return IG_OK;
}

static ig_status render(trun *r, const template_input *in, template_output *ret)
{
    if (in->date && !read_date(in->date, &r->date))
        return ig_fail(IG_EINVAL, "date: not like 2026-11-29 or 2026-11-29T13:14:15");
    r->has_date = in->date != NULL;
    TRY(bind_variables(r, in));
    TRY(trun_run(r, &r->t->body));
    return give_output(r->out, ret);
}

ig_status template_render(const template *t, const template_input *in, template_output *ret_output)
{
    AUTO(arena) values = {0};
    AUTO(tbuild) out = {0};
    trun r = {.t = t, .limits = limits_of(&in->limits), .out = &out};
    arena_init(&values, r.limits.max_memory);
    tbuild_init(&out, r.limits.max_output);
    r.a = &values;
    r.steps = r.limits.max_steps;
    ig_status status = render(&r, in, ret_output);
    json_decref(r.parsed);
    return status;
}

void template_output_done(template_output *o)
{
    mem_free(o->text);
    mem_free(o->spans);
    *o = (template_output){0};
}
