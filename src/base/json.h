/* json.h: bounded JSON reading on jansson: strict UTF-8, duplicate keys refused, size and depth
 * limited, errors that name the place ("config.json: num_hidden_layers: expected an integer").
 * Writing is done straight into a buf (buf_json_string).
 * jansson allocates with malloc; a test that walks allocation failures calls
 * json_set_alloc_funcs(mem_alloc, mem_free) first. Objects keep the order of the text. */
#ifndef BASE_JSON_H
#define BASE_JSON_H
#include <jansson.h>
#include "base/buf.h"
#include "base/str.h"

/* Parses a whole document of at most max_bytes and max_depth nested containers. `what` names it in
 * errors. Free with json_decref. The top is an object or an array. NUL escapes in strings are
 * allowed (use json_string_length). */
IG_MUST_USE ig_status json_parse(const char *what, str text, size_t max_bytes, int max_depth,
                                 json_t **ret_json);
static inline void json_ptr_free(json_t *j) { json_decref(j); }
AUTO_FN(json_ptr, json_t *, json_ptr_free)

/* Typed access; `what` names the object in errors. An option missing or null takes its default. */
IG_MUST_USE ig_status json_get_int(const char *what, const json_t *obj, const char *key, int64_t lo,
                                   int64_t hi, int64_t *ret);
IG_MUST_USE ig_status json_opt_int(const char *what, const json_t *obj, const char *key, int64_t lo,
                                   int64_t hi, int64_t dflt, int64_t *ret);
IG_MUST_USE ig_status json_opt_num(const char *what, const json_t *obj, const char *key, double lo,
                                   double hi, double dflt, double *ret);
IG_MUST_USE ig_status json_opt_bool(const char *what, const json_t *obj, const char *key, bool dflt,
                                    bool *ret);
IG_MUST_USE ig_status json_get_str(const char *what, const json_t *obj, const char *key, str *ret);
/* {NULL, 0} when absent. */
IG_MUST_USE ig_status json_opt_str(const char *what, const json_t *obj, const char *key, str *ret);
IG_MUST_USE ig_status json_get_obj(const char *what, const json_t *obj, const char *key,
                                   json_t **ret_borrowed);
IG_MUST_USE ig_status json_get_arr(const char *what, const json_t *obj, const char *key,
                                   json_t **ret_borrowed);
/* Appends the compact text of a value; a failure is remembered in out. */
void json_write(const json_t *v, buf *out);
#endif
