/* json.c: bounded JSON reading on jansson (contract in json.h). Depth is checked on the text before
 * jansson sees it, because its own limit (2048) is fixed when it is built. */
#include "base/json.h"
#include <string.h>

/* Deepest nesting of containers in the text; brackets inside strings do not count. */
static int depth_of(str text)
{
    int depth = 0, deepest = 0;
    bool in_string = false;
    for (size_t i = 0; i < text.n; i++) {
        char c = text.p[i];
        if (in_string) {
            if (c == '\\')
                i++;
            else if (c == '"')
                in_string = false;
        } else if (c == '"') {
            in_string = true;
        } else if (c == '[' || c == '{') {
            if (++depth > deepest) deepest = depth;
            if (depth == INT32_MAX) break;
        } else if (c == ']' || c == '}') {
            depth--;
        }
    }
    return deepest;
}

ig_status json_parse(const char *what, str text, size_t max_bytes, int max_depth, json_t **ret_json)
{
    if (text.n > max_bytes)
        return ig_fail(IG_ELIMIT, "%s: %zu bytes of JSON, at most %zu are read", what, text.n,
                       max_bytes);
    int depth = depth_of(text);
    if (depth > max_depth)
        return ig_fail(IG_ELIMIT, "%s: JSON nested %d deep, at most %d is read", what, depth,
                       max_depth);
    json_error_t e;
    json_t *j =
        json_loadb(text.p ? text.p : "", text.n, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, &e);
    /* Out of memory, jansson leaves the line at -1 (or speaks of a bad token). */
    if (!j && (json_error_code(&e) == json_error_out_of_memory || e.line < 0))
        return ig_fail(IG_ENOMEM, "%s: out of memory while reading JSON", what);
    if (!j)
        return ig_fail(IG_EFORMAT, "%s: not valid JSON at line %d column %d: %s", what, e.line,
                       e.column, e.text);
    *ret_json = j;
    return IG_OK;
}

/* The value, or NULL when absent or null. */
static json_t *present(const json_t *obj, const char *key)
{
    json_t *v = json_object_get(obj, key);
    return json_is_null(v) ? NULL : v;
}

static ig_status missing(const char *what, const char *key)
{
    return ig_fail(IG_EFORMAT, "%s: %s is missing", what, key);
}

static ig_status expected(const char *what, const char *key, const char *kind)
{
    return ig_fail(IG_EFORMAT, "%s: %s: expected %s", what, key, kind);
}

static ig_status as_int(const char *what, const char *key, const json_t *v, int64_t lo, int64_t hi,
                        int64_t *ret)
{
    if (!json_is_integer(v)) return expected(what, key, "an integer");
    int64_t i = json_integer_value(v);
    if (i < lo || i > hi)
        return ig_fail(IG_EFORMAT, "%s: %s is %lld, must be from %lld to %lld", what, key,
                       (long long)i, (long long)lo, (long long)hi);
    *ret = i;
    return IG_OK;
}

ig_status json_get_int(const char *what, const json_t *obj, const char *key, int64_t lo, int64_t hi,
                       int64_t *ret)
{
    const json_t *v = present(obj, key);
    return v ? as_int(what, key, v, lo, hi, ret) : missing(what, key);
}

ig_status json_opt_int(const char *what, const json_t *obj, const char *key, int64_t lo, int64_t hi,
                       int64_t dflt, int64_t *ret)
{
    const json_t *v = present(obj, key);
    if (v) return as_int(what, key, v, lo, hi, ret);
    *ret = dflt;
    return IG_OK;
}

ig_status json_opt_num(const char *what, const json_t *obj, const char *key, double lo, double hi,
                       double dflt, double *ret)
{
    const json_t *v = present(obj, key);
    if (!v) {
        *ret = dflt;
        return IG_OK;
    }
    if (!json_is_number(v)) return expected(what, key, "a number");
    double x = json_number_value(v);
    if (!(x >= lo && x <= hi))
        return ig_fail(IG_EFORMAT, "%s: %s is %g, must be from %g to %g", what, key, x, lo, hi);
    *ret = x;
    return IG_OK;
}

ig_status json_opt_bool(const char *what, const json_t *obj, const char *key, bool dflt, bool *ret)
{
    const json_t *v = present(obj, key);
    if (v && !json_is_boolean(v)) return expected(what, key, "true or false");
    *ret = v ? json_is_true(v) : dflt;
    return IG_OK;
}

ig_status json_opt_str(const char *what, const json_t *obj, const char *key, str *ret)
{
    const json_t *v = present(obj, key);
    if (v && !json_is_string(v)) return expected(what, key, "a string");
    *ret = v ? (str){json_string_value(v), json_string_length(v)} : (str){NULL, 0};
    return IG_OK;
}

ig_status json_get_str(const char *what, const json_t *obj, const char *key, str *ret)
{
    if (!present(obj, key)) return missing(what, key);
    return json_opt_str(what, obj, key, ret);
}

ig_status json_get_obj(const char *what, const json_t *obj, const char *key, json_t **ret_borrowed)
{
    json_t *v = present(obj, key);
    if (!v) return missing(what, key);
    if (!json_is_object(v)) return expected(what, key, "an object");
    *ret_borrowed = v;
    return IG_OK;
}

ig_status json_get_arr(const char *what, const json_t *obj, const char *key, json_t **ret_borrowed)
{
    json_t *v = present(obj, key);
    if (!v) return missing(what, key);
    if (!json_is_array(v)) return expected(what, key, "an array");
    *ret_borrowed = v;
    return IG_OK;
}

static int write_piece(const char *p, size_t n, void *user)
{
    buf_add(user, p, n);
    return 0;
}

void json_write(const json_t *v, buf *out)
{
    size_t flags = JSON_COMPACT | JSON_ENCODE_ANY | JSON_REAL_PRECISION(17);
    if (json_dump_callback(v, write_piece, out, flags) && out->status == IG_OK)
        out->status = ig_fail(IG_ENOMEM, "no memory to write JSON");
}
