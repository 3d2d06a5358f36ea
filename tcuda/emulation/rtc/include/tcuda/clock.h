// The clocks of a multiprocessor.
#pragma once

#include "tcuda/launch.h"

namespace tcuda {

inline unsigned long long ticks() {
#if defined(__x86_64__)
    return __builtin_ia32_rdtsc();
#elif defined(__aarch64__)
    unsigned long long count;
    __asm__ volatile("mrs %0, cntvct_el0" : "=r"(count));
    return count;
#else
    static unsigned long long count;
    return ++count;
#endif
}

}  // namespace tcuda

typedef long clock_t;  // as in the host's <time.h>

// clock is a template, so that a source that includes the host's <time.h> compiles too.
template <int unused = 0>
inline clock_t clock() {
    return static_cast<clock_t>(::tcuda::ticks());
}
inline long long clock64() {
    return static_cast<long long>(::tcuda::ticks());
}
inline void __nanosleep(unsigned int) {
    ::tcuda::pause();
}
