/* status.c: the calling thread's error records (see status.h and ingot/status.h). Owns the root
 * record of each thread; the others belong to scopes. Allocates nothing, so that running out of
 * memory can be reported. */
#include "base/status.h"
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static _Thread_local status_record root;
static _Thread_local status_record *top; /* NULL stands for &root */

static const char *const names[] = {
    [IG_OK] = "IG_OK",
    [IG_EINVAL] = "IG_EINVAL",
    [IG_ESHAPE] = "IG_ESHAPE",
    [IG_EDTYPE] = "IG_EDTYPE",
    [IG_ENOMEM] = "IG_ENOMEM",
    [IG_EIO] = "IG_EIO",
    [IG_EFORMAT] = "IG_EFORMAT",
    [IG_EDEVICE] = "IG_EDEVICE",
    [IG_ELIMIT] = "IG_ELIMIT",
    [IG_ECANCELLED] = "IG_ECANCELLED",
    [IG_EVERIFY] = "IG_EVERIFY",
    [IG_ENOTFOUND] = "IG_ENOTFOUND",
    [IG_EUNSUPPORTED] = "IG_EUNSUPPORTED",
    [IG_EBUSY] = "IG_EBUSY",
};
_Static_assert(sizeof(names) / sizeof(names[0]) == IG_EBUSY + 1, "a status has no name");

const char *ig_status_name(ig_status s)
{
    if ((unsigned)s >= sizeof(names) / sizeof(names[0])) return "IG_UNKNOWN";
    return names[s];
}

status_record *status_top(void) { return top ? top : &root; }

static void empty(status_record *r)
{
    r->code = IG_OK;
    r->handed_up = false;
    r->message[0] = 0;
}

void status_push(status_record *r)
{
    empty(r);
    r->below = status_top();
    top = r;
}

ig_status status_pop(status_record *r)
{
    status_record *below = r->below;
    top = below;
    bool free_to_show = below->code == IG_OK || below->handed_up || below == &root;
    if (r->code != IG_OK && free_to_show) {
        below->code = r->code;
        below->handed_up = true;
        memcpy(below->message, r->message, sizeof r->message);
    }
    return r->code;
}

const char *ig_error_message(void) { return status_top()->message; }

ig_status ig_error_code(void) { return status_top()->code; }

void ig_error_clear(void) { empty(status_top()); }

/* A cut must not leave half a character: messages end up in JSON. */
static void trim_to_characters(char *s, size_t n)
{
    size_t i = n;
    while (i > 0 && ((unsigned char)s[i - 1] & 0xC0) == 0x80) i--;
    if (i == 0) return;
    unsigned char lead = (unsigned char)s[i - 1];
    size_t want = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : lead >= 0xC0 ? 2 : 1;
    if (n - (i - 1) < want) s[i - 1] = 0;
}

static void format_into(char out[STATUS_MESSAGE_N], const char *format, va_list args)
{
    int n = vsnprintf(out, STATUS_MESSAGE_N, format, args);
    if (n < 0) out[0] = 0;
    if (n >= STATUS_MESSAGE_N) trim_to_characters(out, STATUS_MESSAGE_N - 1);
}

ig_status ig_fail(ig_status code, const char *format, ...)
{
    status_record *r = status_top();
    if (r->code != IG_OK && !r->handed_up && r != &root) return code;
    char message[STATUS_MESSAGE_N]; /* the arguments may point into the old message */
    va_list args;
    va_start(args, format);
    format_into(message, format, args);
    va_end(args);
    memcpy(r->message, message, sizeof message);
    r->code = code;
    r->handed_up = false;
    return code;
}

ig_status ig_fail_context(ig_status code, const char *format, ...)
{
    status_record *r = status_top();
    char message[STATUS_MESSAGE_N];
    va_list args;
    va_start(args, format);
    format_into(message, format, args);
    va_end(args);
    size_t n = strlen(message), n_old = strlen(r->message);
    size_t room = STATUS_MESSAGE_N - 1 - n;
    memcpy(message + n, r->message, n_old < room ? n_old : room);
    message[n + (n_old < room ? n_old : room)] = 0;
    if (n_old > room) trim_to_characters(message, STATUS_MESSAGE_N - 1);
    memcpy(r->message, message, sizeof message);
    if (r->code == IG_OK) r->code = code;
    return code;
}
