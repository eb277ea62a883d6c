/* status.h: how Ingot reports failure.
 *
 * Every function that can fail and is not a graph builder returns an ig_status; results travel in
 * trailing ret_ parameters, untouched on failure. The reason (code and message) is kept in the
 * error record of the calling thread's innermost scope: in an open scope the first failure wins;
 * outside any scope the last one does. The library never aborts, exits or prints. */
#ifndef INGOT_STATUS_H
#define INGOT_STATUS_H

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define IG_MUST_USE __attribute__((warn_unused_result))
#define IG_API __attribute__((visibility("default")))
#define IG_PRINTF(f, a) __attribute__((format(printf, f, a)))
#else
#define IG_MUST_USE
#define IG_API
#define IG_PRINTF(f, a)
#endif

/* Numbers are pinned: they are part of the ABI and of `--json` output. */
typedef enum ig_status {
    IG_OK = 0,
    IG_EINVAL = 1,        /* an argument is wrong */
    IG_ESHAPE = 2,        /* shapes do not fit together */
    IG_EDTYPE = 3,        /* the operation does not take this dtype */
    IG_ENOMEM = 4,        /* out of memory, or over a memory limit */
    IG_EIO = 5,           /* the operating system refused a read, write or sync */
    IG_EFORMAT = 6,       /* bytes from outside are malformed */
    IG_EDEVICE = 7,       /* the device failed */
    IG_ELIMIT = 8,        /* a stated maximum was exceeded */
    IG_ECANCELLED = 9,    /* the caller or the client asked to stop */
    IG_EVERIFY = 10,      /* a digest, signature or proof does not match */
    IG_ENOTFOUND = 11,    /* a file, tensor, key or event does not exist */
    IG_EUNSUPPORTED = 12, /* well-formed, but not something this build does */
    IG_EBUSY = 13         /* not now: try again when something has finished */
} ig_status;

/* Short fixed name of a status: "IG_ESHAPE". Never NULL. */
IG_API const char *ig_status_name(ig_status s);

/* The message of the innermost error record of this thread ("" when none). Valid until the next
 * failure or scope operation on this thread. */
IG_API const char *ig_error_message(void);

/* The code of the innermost error record of this thread; IG_OK when none. */
IG_API ig_status ig_error_code(void);

/* Empties the innermost error record: for code that handled a failure itself. */
IG_API void ig_error_clear(void);

/* Records a failure (code and printf message, at most 1023 bytes kept) and returns `code`. For code
 * that is built on the library (libingot-lm, bindings, custom operations). */
IG_API IG_PRINTF(2, 3) ig_status ig_fail(ig_status code, const char *format, ...);

/* Puts context ("model.safetensors: ") before the current message and returns `code`. */
IG_API IG_PRINTF(2, 3) ig_status ig_fail_context(ig_status code, const char *format, ...);

#ifdef __cplusplus
}
#endif
#endif
