// Switches between stacks in one thread of the operating system.
#pragma once

#include <cstddef>

#if !defined(__x86_64__) && !defined(__aarch64__)
#include <ucontext.h>
#endif

namespace tcuda {

// The place at which code was left. `Context{}` is the place that the first switch away from the running code fills.
class Context {
public:
    Context() = default;
    // A switch to the context calls entry(argument), which must not return, on the stack below `top`.
    void prepare(char *bottom, char *top, void (*entry)(void *), void *argument);
    // Goes on in `to`, until another switch comes back.
    void switch_to(Context &to);
    // Tells the processor that a switch to the context comes soon.
    void prefetch() const;

private:
#if defined(__x86_64__) || defined(__aarch64__)
    void *stack_pointer_ = nullptr;
#else
    ucontext_t context_{};
#endif
};

inline void Context::prefetch() const {
#if defined(__x86_64__) || defined(__aarch64__)
    __builtin_prefetch(stack_pointer_, 1);
    __builtin_prefetch(static_cast<char *>(stack_pointer_) + 64, 1);
#endif
}

} // namespace tcuda
