/* auto.h: cleanup in three macros. AUTO(type) frees a local at scope end through type_auto(), STEAL
 * hands a pointer over, TRY returns a failing status; it is the only macro that may return. */
#ifndef BASE_AUTO_H
#define BASE_AUTO_H
#include "ingot/status.h"

#define AUTO(type) __attribute__((cleanup(type##_auto))) type
/* Defines the pointer type `name` and name_auto, which calls free_fn(*p). */
#define AUTO_FN(name, type, free_fn) \
    typedef type name;               \
    static inline void name##_auto(name *p) { free_fn(*p); }
#define STEAL(p)                   \
    (__extension__({               \
        __auto_type stolen_ = (p); \
        (p) = 0;                   \
        stolen_;                   \
    }))
#define TRY(call)                                                          \
    do {                                                                   \
        ig_status try_status_ = (call);                                    \
        if (__builtin_expect(try_status_ != IG_OK, 0)) return try_status_; \
    } while (0)
#define N_ELEM(a) (sizeof(a) / sizeof((a)[0]))
#endif
