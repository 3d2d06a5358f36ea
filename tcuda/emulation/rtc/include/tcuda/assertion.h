// assert and the ways in which a kernel ends itself.
// <assert.h> includes this header again, because a source may define NDEBUG in between.
#include "tcuda/launch.h"

#undef assert
#ifdef NDEBUG
#define assert(...) ((void)0)
#else
#define assert(...) \
    (static_cast<bool>(__VA_ARGS__) ? (void)0 : ::tcuda::fail_assertion(#__VA_ARGS__, __FILE__, __LINE__, __PRETTY_FUNCTION__))
#endif

#ifndef TCUDA_ASSERTION_H
#define TCUDA_ASSERTION_H

[[noreturn]] inline void __trap() {
    ::tcuda::trap();
}
inline void __brkpt() {}
inline void __prof_trigger(int) {}

#endif
