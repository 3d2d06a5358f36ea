// Switches between stacks in one thread of the operating system.
#pragma once

#include <cstddef>

#if !defined(__x86_64__) && !defined(__aarch64__)
#include <ucontext.h>
#endif

// Sanitizers must be told about switches of stacks.
#if defined(__SANITIZE_ADDRESS__)
#define TCUDA_ADDRESS_SANITIZER 1
#elif defined(__SANITIZE_THREAD__)
#define TCUDA_THREAD_SANITIZER 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define TCUDA_ADDRESS_SANITIZER 1
#elif __has_feature(thread_sanitizer)
#define TCUDA_THREAD_SANITIZER 1
#endif
#endif

namespace tcuda {

// The place at which code was left. `Context{}` is the place that the first switch away from the running code fills.
class Context {
public:
    Context() = default;
    ~Context();
    Context(const Context &) = delete;
    Context &operator=(const Context &) = delete;
    // A switch to the context calls entry(argument), which must not return, on the stack below `top`. The context must
    // keep its address.
    void prepare(char *bottom, char *top, void (*entry)(void *), void *argument);
    // Goes on in `to`, until another switch comes back to this context.
    void switch_to(Context &to);
    // Tells the processor that a switch to the context comes soon.
    void prefetch() const;

private:
    void set_stack(char *bottom, char *top, void (*entry)(void *), void *argument);
    void leave_for(Context &to);

#if defined(__x86_64__) || defined(__aarch64__)
    void *stack_pointer_ = nullptr;
#else
    ucontext_t context_{};
#endif
#if defined(TCUDA_ADDRESS_SANITIZER)
    static void arrive(void *fake_stack);
    static void start(void *context);
    const void *bottom_ = nullptr; // null for the stack of the thread, before its first switch
    std::size_t size_ = 0;
    void (*entry_)(void *) = nullptr;
    void *argument_ = nullptr;
#elif defined(TCUDA_THREAD_SANITIZER)
    void *fiber_ = nullptr;
    bool prepared_ = false;
#endif
};

#if !defined(TCUDA_THREAD_SANITIZER)
inline Context::~Context() = default;
#endif

inline void Context::prefetch() const {
#if defined(__x86_64__) || defined(__aarch64__)
    __builtin_prefetch(stack_pointer_, 1);
    __builtin_prefetch(static_cast<char *>(stack_pointer_) + 64, 1);
#endif
}

#if !defined(TCUDA_ADDRESS_SANITIZER) && !defined(TCUDA_THREAD_SANITIZER)
inline void Context::prepare(char *bottom, char *top, void (*entry)(void *), void *argument) {
    set_stack(bottom, top, entry, argument);
}
inline void Context::switch_to(Context &to) { leave_for(to); }
#endif

} // namespace tcuda
