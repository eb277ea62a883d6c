/* request.c: life of a request, its output buffer, queues of requests. */
#include "server/request.h"
#include <stdio.h>
#include <string.h>
#include "base/clock.h"

ig_status request_new(server *sv, api_kind kind, buf *body, request **ret_request)
{
    uint8_t random[12];
    char hex[25];
    request *r = mem_calloc(1, sizeof *r);
    if (!r) return IG_ENOMEM;
    ig_status s = random_bytes(random, sizeof random);
    if (s == IG_OK) s = lock_init(&r->lock, RANK_REQUEST);
    if (s == IG_OK) s = commit_secret_new(&r->secret);
    if (s != IG_OK) {
        mem_free(r);
        return s;
    }
    for (size_t i = 0; i < sizeof random; i++) snprintf(hex + 2 * i, 3, "%02x", random[i]);
    snprintf(r->id, sizeof r->id, "%s-%s", kind == API_CHAT ? "chatcmpl" : "cmpl", hex);
    r->sv = sv;
    atomic_store(&r->refs, 1);
    r->created = clock_wall_us() / 1000000;
    r->body = *body;
    buf_init(body, 0);
    buf_init(&r->out, REQUEST_MAX_BODY);
    r->fd = -1;
    for (int i = 0; i < API_MAX_CHOICES; i++) {
        buf_init(&r->choice[i].text, (size_t)1 << 28);
        buf_init(&r->choice[i].held, (size_t)1 << 20);
        buf_init(&r->choice[i].logprobs, (size_t)1 << 28);
    }
    *ret_request = r;
    return IG_OK;
}

static void choice_done(choice *c)
{
    ig_lm_stream_free(c->stream);
    buf_done(&c->text);
    buf_done(&c->held);
    buf_done(&c->logprobs);
    sha256_done(&c->trace);
    mem_free(c->ids);
}

void request_hold(request *r) { atomic_fetch_add(&r->refs, 1); }

void request_drop(request *r)
{
    if (!r || atomic_fetch_sub(&r->refs, 1) != 1) return;
    for (int i = 0; i < API_MAX_CHOICES; i++) choice_done(&r->choice[i]);
    ig_lm_prompt_free(r->prompt);
    audit_token_free(r->token);
    api_request_done(&r->api);
    buf_done(&r->body);
    buf_done(&r->out);
    lock_done(&r->lock);
    mem_free(r);
}

/* Under lock. */
static void wake(request *r)
{
    if (!r->suspended || !r->conn) return;
    r->suspended = false;
    r->sv->resume(r->conn);
}

void request_start(request *r, int http, bool stream)
{
    lock_take(&r->lock);
    r->http = http;
    r->stream = stream;
    r->started = true;
    r->quiet_since = clock_mono_us();
    wake(r);
    lock_drop(&r->lock);
}

/* Under lock. Bytes that were taken make room, so that a reader may lag behind for as long as it
 * likes, but never by more than REQUEST_MAX_OUT. */
static void forget_taken(request *r)
{
    if (r->taken == r->out.n) {
        buf_clear(&r->out);
        r->taken = 0;
    } else if (r->taken >= REQUEST_MAX_OUT / 2) {
        r->out.n -= r->taken;
        memmove(r->out.data, r->out.data + r->taken, r->out.n);
        r->taken = 0;
    }
}

void request_write(request *r, const void *p, size_t n)
{
    lock_take(&r->lock);
    bool dropped = atomic_load(&r->gone);
    if (!dropped) {
        forget_taken(r);
        dropped = r->out.n - r->taken + n > REQUEST_MAX_OUT;
        if (!dropped) buf_add(&r->out, p, n);
        if (dropped || r->out.status != IG_OK) atomic_store(&r->gone, true);
    }
    r->quiet_since = clock_mono_us();
    wake(r);
    lock_drop(&r->lock);
}

void request_finish(request *r, const void *p, size_t n)
{
    lock_take(&r->lock);
    if (!r->stream || !atomic_load(&r->gone)) buf_add(&r->out, p, n);
    r->ended = true;
    wake(r);
    lock_drop(&r->lock);
}

int64_t request_read(request *r, char *out, size_t cap, void (*suspend)(void *conn))
{
    int64_t n = 0;
    lock_take(&r->lock);
    size_t there = r->out.n - r->taken;
    if (there) {
        n = (int64_t)(there < cap ? there : cap);
        memcpy(out, r->out.data + r->taken, (size_t)n);
        r->taken += (size_t)n;
        r->sent += n;
    } else if (r->ended) {
        n = -1;
    } else if (suspend) {
        r->suspended = true;
        suspend(r->conn);
    }
    lock_drop(&r->lock);
    return n;
}

/* --- queue */
ig_status queue_init(queue *q)
{
    *q = (queue){0};
    TRY(lock_init(&q->lock, RANK_QUEUE));
    return cond_init(&q->filled);
}

void queue_done(queue *q)
{
    cond_done(&q->filled);
    lock_done(&q->lock);
}

void queue_push(queue *q, request *r)
{
    lock_take(&q->lock);
    r->next = NULL;
    if (q->tail)
        q->tail->next = r;
    else
        q->head = r;
    q->tail = r;
    q->n++;
    cond_signal(&q->filled);
    lock_drop(&q->lock);
}

request *queue_pop(queue *q, int64_t until_us)
{
    lock_take(&q->lock);
    while (!q->head && !q->closed && until_us) {
        if (until_us < 0)
            cond_wait(&q->filled, &q->lock);
        else if (!cond_wait_until(&q->filled, &q->lock, until_us))
            break;
    }
    request *r = q->head;
    if (r) {
        q->head = r->next;
        if (!q->head) q->tail = NULL;
        q->n--;
    }
    lock_drop(&q->lock);
    return r;
}

void queue_close(queue *q)
{
    lock_take(&q->lock);
    q->closed = true;
    cond_broadcast(&q->filled);
    lock_drop(&q->lock);
}
