#include "emulated/kernels/fault_guard.hpp"

#include <csignal>
#include <sys/mman.h>

#include <array>
#include <cerrno>
#include <mutex>
#include <utility>

#include "threads/published.hpp"

#if defined(__linux__) && (defined(__x86_64__) || defined(__aarch64__))
#include <ucontext.h>
#define TCUDA_REGISTERS 1
#endif

namespace tcuda {

#if defined(TCUDA_REGISTERS)

namespace {

constexpr std::array<int, 4> guarded_signals{SIGSEGV, SIGBUS, SIGFPE, SIGILL};

void leave(FaultGuard::Owner *left) { left->leave(); }

class Registers {
public:
    explicit Registers(void *context) : context_(static_cast<ucontext_t *>(context)->uc_mcontext) {}

#if defined(__x86_64__)
    std::uintptr_t stack_pointer() const { return static_cast<std::uintptr_t>(context_.gregs[REG_RSP]); }
    std::uintptr_t program_counter() const { return static_cast<std::uintptr_t>(context_.gregs[REG_RIP]); }

    // The reason of a refusal for which x86 gives no address.
    RefusedInstruction::Reason reason() const {
        using Reason = RefusedInstruction::Reason;
        const auto *code = reinterpret_cast<const unsigned char *>(program_counter());
        constexpr unsigned char returns = 0xc3, jumps = 0xff, width = 0x66, two_bytes = 0x0f;
        if (*code == returns || *code == jumps)
            return Reason::call;
        code += *code == width;
        code += *code >> 4 == 4; // the prefix of further registers
        const bool vectors = *code == two_bytes && (code[1] < 0x80 || code[1] >= 0xc2);
        const bool wide_vectors = *code == 0xc4 || *code == 0xc5 || *code == 0x62;
        return vectors || wide_vectors ? Reason::alignment : Reason::no_address;
    }

    // After the handler, the thread calls function(argument) on the stack below `top`.
    void call(void (*function)(FaultGuard::Owner *), FaultGuard::Owner *argument, char *top) {
        constexpr greg_t backwards = 0x400; // the direction of copies, which is forwards in every function
        const auto aligned = reinterpret_cast<std::uintptr_t>(top) & ~std::uintptr_t(63);
        context_.gregs[REG_RSP] = static_cast<greg_t>(aligned - sizeof(void *)); // as after a call
        context_.gregs[REG_RIP] = reinterpret_cast<greg_t>(function);
        context_.gregs[REG_RDI] = reinterpret_cast<greg_t>(argument);
        context_.gregs[REG_EFL] &= ~backwards;
    }
#else
    std::uintptr_t stack_pointer() const { return context_.sp; }
    std::uintptr_t program_counter() const { return context_.pc; }
    RefusedInstruction::Reason reason() const { return RefusedInstruction::Reason::no_address; }

    void call(void (*function)(FaultGuard::Owner *), FaultGuard::Owner *argument, char *top) {
        context_.sp = reinterpret_cast<std::uintptr_t>(top) & ~std::uintptr_t(63);
        context_.pc = reinterpret_cast<std::uintptr_t>(function);
        context_.regs[0] = reinterpret_cast<std::uintptr_t>(argument);
    }
#endif

private:
    mcontext_t &context_;
};

RefusedInstruction refused_by(int number, const siginfo_t &info, const Registers &registers) {
    using Reason = RefusedInstruction::Reason;
    const auto address = reinterpret_cast<std::uintptr_t>(info.si_addr);
    if (number == SIGFPE)
        return {Reason::division, 0};
    if (number == SIGILL)
        return {Reason::instruction, address};
    if (info.si_code == SI_KERNEL)
        return {registers.reason(), 0};
    if (number == SIGBUS && info.si_code == BUS_ADRALN)
        return {Reason::alignment, address};
    return {address == registers.program_counter() ? Reason::call : Reason::access, address};
}

} // namespace

// The guards, and the handlers of the signals. The handlers stay until a signal comes from code without a guard. The
// next guard installs them again, also above a handler that was installed meanwhile. Such a handler may call ours,
// which then calls the handler that was there before any guard.
//
// A handler takes the mutex: a refused instruction is no part of a function that holds the mutex.
class FaultHandlers {
public:
    // Never destroyed, because a handler may run until the process ends.
    static FaultHandlers &instance() {
        static Published<FaultHandlers> made;
        return made.get();
    }

    void add(FaultGuard *guard) {
        const std::lock_guard<std::mutex> held(mutex_);
        guard->next_ = first_;
        if (first_ != nullptr)
            first_->previous_ = guard;
        first_ = guard;
        if (!is_current(guarded_signals[0]))
            install();
    }

    void remove(FaultGuard *guard) {
        const std::lock_guard<std::mutex> held(mutex_);
        (guard->previous_ == nullptr ? first_ : guard->previous_->next_) = guard->next_;
        if (guard->next_ != nullptr)
            guard->next_->previous_ = guard->previous_;
    }

private:
    static void handle(int number, siginfo_t *info, void *context) {
        const int error = errno;
        Registers registers(context);
        FaultHandlers &self = instance();
        const bool sent = info->si_code <= 0; // by a process
        if (FaultGuard *guard = sent ? nullptr : self.guard_of(registers.stack_pointer())) {
            FaultGuard::Owner &owner = guard->owner_;
            registers.call(leave, &owner, owner.note(refused_by(number, *info, registers)));
        } else if (sent || !self.uninstall(number)) {
            self.pass_on(number, info, context);
        }
        errno = error;
    }

    FaultGuard *guard_of(std::uintptr_t stack_pointer) {
        const std::lock_guard<std::mutex> held(mutex_);
        FaultGuard *guard = first_;
        while (guard != nullptr && (stack_pointer < guard->begin_ || stack_pointer >= guard->end_))
            guard = guard->next_;
        return guard;
    }

    static bool is_current(int number) {
        struct sigaction now{};
        return sigaction(number, nullptr, &now) == 0 && now.sa_sigaction == handle;
    }

    void install() {
        struct sigaction ours{};
        ours.sa_sigaction = handle;
        sigemptyset(&ours.sa_mask);
        ours.sa_flags = SA_SIGINFO | SA_ONSTACK; // The stack of a kernel may be full.
        for (std::size_t place = 0; place < guarded_signals.size(); ++place)
            if (!is_current(guarded_signals[place]))
                sigaction(guarded_signals[place], &ours, &replaced_[place]);
        if (!std::exchange(installed_before_, true))
            first_replaced_ = replaced_;
    }

    // Puts back the handlers of before, so that the instruction is executed again and reaches the handler of before
    // with the stack and the mask that this handler wants. False if another handler has called ours.
    bool uninstall(int number) {
        const std::lock_guard<std::mutex> held(mutex_);
        if (!is_current(number))
            return false;
        for (std::size_t place = 0; place < guarded_signals.size(); ++place)
            if (is_current(guarded_signals[place]))
                sigaction(guarded_signals[place], &replaced_[place], nullptr);
        return true;
    }

    void pass_on(int number, siginfo_t *info, void *context) {
        struct sigaction before{};
        {
            const std::lock_guard<std::mutex> held(mutex_);
            for (std::size_t place = 0; place < guarded_signals.size(); ++place)
                if (guarded_signals[place] == number)
                    before = first_replaced_[place];
        }
        if ((before.sa_flags & SA_SIGINFO) != 0) {
            before.sa_sigaction(number, info, context);
        } else if (before.sa_handler == SIG_DFL || before.sa_handler == SIG_IGN) {
            std::signal(number, SIG_DFL);
            std::raise(number); // ends the process after the handler
        } else {
            before.sa_handler(number);
        }
    }

    std::mutex mutex_;
    FaultGuard *first_ = nullptr;
    bool installed_before_ = false;
    std::array<struct sigaction, guarded_signals.size()> replaced_{}, first_replaced_{};
};

namespace {

// The stack of the handlers of a thread, from its first guard to the end of the thread.
class HandlerStack {
public:
    void use() {
        stack_t now{};
        if (memory_ != nullptr || sigaltstack(nullptr, &now) != 0 || (now.ss_flags & SS_DISABLE) == 0)
            return;
        void *memory = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (memory == MAP_FAILED)
            return;
        memory_ = memory;
        stack_t ours{};
        ours.ss_sp = memory_;
        ours.ss_size = size;
        sigaltstack(&ours, nullptr);
    }

    ~HandlerStack() {
        if (memory_ == nullptr)
            return;
        stack_t now{};
        if (sigaltstack(nullptr, &now) == 0 && now.ss_sp == memory_) {
            now.ss_flags = SS_DISABLE;
            sigaltstack(&now, nullptr);
        }
        munmap(memory_, size);
    }

private:
    static constexpr std::size_t size = std::size_t(64) << 10;

    void *memory_ = nullptr;
};

thread_local HandlerStack handler_stack;

} // namespace

FaultGuard::FaultGuard(Owner &owner, const char *begin, const char *end)
    : owner_(owner), begin_(reinterpret_cast<std::uintptr_t>(begin)), end_(reinterpret_cast<std::uintptr_t>(end)) {
    handler_stack.use();
    FaultHandlers::instance().add(this);
}

FaultGuard::~FaultGuard() { FaultHandlers::instance().remove(this); }

#else

FaultGuard::FaultGuard(Owner &owner, const char *begin, const char *end)
    : owner_(owner), begin_(reinterpret_cast<std::uintptr_t>(begin)), end_(reinterpret_cast<std::uintptr_t>(end)) {}

FaultGuard::~FaultGuard() = default;

#endif

} // namespace tcuda
