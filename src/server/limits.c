/* limits.c: reads counters; changes nothing. */
#include "server/limits.h"
#include <string.h>

static long long get(_Atomic int64_t *c)
{
    return (long long)atomic_load_explicit(c, memory_order_relaxed);
}

static void stages(server *sv, buf *out)
{
    for (int i = STAGE_NONE + 1; i < N_STAGES; i++) {
        const stage_info *s = &stage_table[i];
        stage_counters *c = &sv->stage[i];
        buf_printf(out,
                   "%s\n{\"number\":%d,\"name\":\"%s\",\"limit\":\"%s\",\"in\":%lld,\"out\":%lld,"
                   "\"refused\":%lld,\"us\":%lld,\"units\":%lld,\"unit\":\"%s\"}",
                   i > 1 ? "," : "", s->number, s->name, stage_limit_name(s->limit), get(&c->n_in),
                   get(&c->n_out), get(&c->n_refused), get(&c->us), get(&c->units), s->unit);
    }
}

void limits_json(server *sv, buf *out)
{
    const ig_lm_facts *f = &sv->model.facts;
    audit_stats log;
    audit_log_stats(sv->log, &log);
    buf_str(out, "{\"model\":{\"name\":");
    buf_json_string(out, sv->model.name, strlen(sv->model.name));
    buf_printf(
        out,
        ",\"parameters\":%lld,\"weight_bytes\":%lld,\"kset\":\"%s\"},\"kv\":{\"type\":\"%s\","
        "\"bytes_per_token\":%lld,\"pool_bytes\":%lld,\"pages\":%lld},"
        "\"arena_bytes\":%lld,\"log\":{\"events\":%llu,\"signed\":%llu,\"syncs\":%llu},"
        "\"stages\":[",
        (long long)f->parameters, (long long)f->weight_bytes, f->kset, f->kv_type,
        (long long)f->kv_bytes_per_token, (long long)f->kv_pool_bytes, (long long)f->kv_pages,
        (long long)f->arena_bytes, (unsigned long long)log.size,
        (unsigned long long)log.signed_size, (unsigned long long)log.n_syncs);
    stages(sv, out);
    buf_str(out, "\n]}\n");
}
