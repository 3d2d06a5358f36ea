#include "emulation/_cpp/kernels/context.hpp"

#include <cstdint>

#if defined(TCUDA_ADDRESS_SANITIZER)
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#elif defined(TCUDA_THREAD_SANITIZER)
#include <sanitizer/tsan_interface.h>
#endif

// swapcontext() makes a system call for the signal mask, which takes ten times as long as the switch. So the switch is
// written in assembly for the common processors. The switch saves the registers that a function must preserve.
#if defined(__x86_64__)

asm(R"(
.text
.p2align 4
.type tcuda_switch_stack, @function
tcuda_switch_stack:
    pushq %rbp
    pushq %rbx
    pushq %r12
    pushq %r13
    pushq %r14
    pushq %r15
    movq %rsp, (%rdi)
    movq %rsi, %rsp
    popq %r15
    popq %r14
    popq %r13
    popq %r12
    popq %rbx
    popq %rbp
    ret
.size tcuda_switch_stack, .-tcuda_switch_stack
.type tcuda_start_stack, @function
tcuda_start_stack:
    movq %r12, %rdi
    callq *%r13
    ud2
.size tcuda_start_stack, .-tcuda_start_stack
)");

#elif defined(__aarch64__)

asm(R"(
.text
.p2align 4
.type tcuda_switch_stack, %function
tcuda_switch_stack:
    sub sp, sp, #160
    stp x19, x20, [sp, #0]
    stp x21, x22, [sp, #16]
    stp x23, x24, [sp, #32]
    stp x25, x26, [sp, #48]
    stp x27, x28, [sp, #64]
    stp x29, x30, [sp, #80]
    stp d8, d9, [sp, #96]
    stp d10, d11, [sp, #112]
    stp d12, d13, [sp, #128]
    stp d14, d15, [sp, #144]
    mov x9, sp
    str x9, [x0]
    mov sp, x1
    ldp x19, x20, [sp, #0]
    ldp x21, x22, [sp, #16]
    ldp x23, x24, [sp, #32]
    ldp x25, x26, [sp, #48]
    ldp x27, x28, [sp, #64]
    ldp x29, x30, [sp, #80]
    ldp d8, d9, [sp, #96]
    ldp d10, d11, [sp, #112]
    ldp d12, d13, [sp, #128]
    ldp d14, d15, [sp, #144]
    add sp, sp, #160
    ret
.size tcuda_switch_stack, .-tcuda_switch_stack
.type tcuda_start_stack, %function
tcuda_start_stack:
    mov x0, x19
    blr x20
    brk #0
.size tcuda_start_stack, .-tcuda_start_stack
)");

#endif

namespace tcuda {

#if defined(__x86_64__) || defined(__aarch64__)

extern "C" {
__attribute__((visibility("hidden"))) void tcuda_switch_stack(void **left, void *entered);
__attribute__((visibility("hidden"))) void tcuda_start_stack();
}

void Context::set_stack(char *, char *top, void (*entry)(void *), void *argument) {
    auto *end = reinterpret_cast<void **>(reinterpret_cast<std::uintptr_t>(top) & ~std::uintptr_t(63));
#if defined(__x86_64__)
    // r15, r14, r13, r12, rbx, rbp and the return address. The stack above them is aligned as a call needs it.
    void **frame = end - 9;
    frame[0] = frame[1] = nullptr;
    frame[2] = reinterpret_cast<void *>(entry);
    frame[3] = argument;
    frame[4] = frame[5] = nullptr;
    frame[6] = reinterpret_cast<void *>(&tcuda_start_stack);
    frame[7] = frame[8] = nullptr;
#else
    void **frame = end - 20;
    for (int place = 0; place < 20; ++place)
        frame[place] = nullptr;
    frame[0] = argument;
    frame[1] = reinterpret_cast<void *>(entry);
    frame[11] = reinterpret_cast<void *>(&tcuda_start_stack);
#endif
    stack_pointer_ = frame;
}

void Context::leave_for(Context &to) { tcuda_switch_stack(&stack_pointer_, to.stack_pointer_); }

#else

namespace {

void start(unsigned entry_high, unsigned entry_low, unsigned argument_high, unsigned argument_low) {
    const auto joined = [](unsigned high, unsigned low) {
        return static_cast<std::uintptr_t>(static_cast<std::uint64_t>(high) << 32 | low);
    };
    reinterpret_cast<void (*)(void *)>(joined(entry_high, entry_low))(
        reinterpret_cast<void *>(joined(argument_high, argument_low)));
}

} // namespace

void Context::set_stack(char *bottom, char *top, void (*entry)(void *), void *argument) {
    getcontext(&context_);
    context_.uc_stack.ss_sp = bottom;
    context_.uc_stack.ss_size = static_cast<std::size_t>(top - bottom);
    context_.uc_link = nullptr;
    const std::uint64_t function = reinterpret_cast<std::uintptr_t>(entry);
    const std::uint64_t object = reinterpret_cast<std::uintptr_t>(argument);
    makecontext(&context_, reinterpret_cast<void (*)()>(start), 4, static_cast<unsigned>(function >> 32),
                static_cast<unsigned>(function), static_cast<unsigned>(object >> 32), static_cast<unsigned>(object));
}

void Context::leave_for(Context &to) { swapcontext(&context_, &to.context_); }

#endif

#if defined(TCUDA_ADDRESS_SANITIZER)

namespace {

thread_local Context *left; // the context that the switch in progress has left

} // namespace

// Runs on the stack that a switch has reached. Tells the sanitizer, and learns the bounds of the stack that was left.
void Context::arrive(void *fake_stack) { __sanitizer_finish_switch_fiber(fake_stack, &left->bottom_, &left->size_); }

void Context::start(void *context) {
    arrive(nullptr);
    auto &self = *static_cast<Context *>(context);
    self.entry_(self.argument_);
}

void Context::prepare(char *bottom, char *top, void (*entry)(void *), void *argument) {
    bottom_ = bottom;
    size_ = static_cast<std::size_t>(top - bottom);
    entry_ = entry;
    argument_ = argument;
    __asan_unpoison_memory_region(bottom, size_); // A launch that was dropped has left frames there.
    set_stack(bottom, top, start, this);
}

void Context::switch_to(Context &to) {
    void *fake_stack = nullptr;
    left = this;
    __sanitizer_start_switch_fiber(&fake_stack, to.bottom_, to.size_);
    leave_for(to);
    arrive(fake_stack);
}

#elif defined(TCUDA_THREAD_SANITIZER)

Context::~Context() {
    if (prepared_)
        __tsan_destroy_fiber(fiber_);
}

void Context::prepare(char *bottom, char *top, void (*entry)(void *), void *argument) {
    fiber_ = __tsan_create_fiber(0);
    prepared_ = true;
    set_stack(bottom, top, entry, argument);
}

void Context::switch_to(Context &to) {
    if (!prepared_)
        fiber_ = __tsan_get_current_fiber();
    __tsan_switch_to_fiber(to.fiber_, 0);
    leave_for(to);
}

#endif

} // namespace tcuda
