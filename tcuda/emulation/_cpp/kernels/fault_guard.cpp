#include "emulation/_cpp/kernels/fault_guard.hpp"

#include <csignal>
#include <sys/mman.h>

#include <array>
#include <cerrno>
#include <mutex>
#include <new>
#include <utility>

#include "threads/published.hpp"
#include "threads/signal_handlers.hpp"

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
    const std::uintptr_t code = registers.program_counter();
    if (number == SIGFPE)
        return {Reason::division, 0, code};
    if (number == SIGILL)
        return {Reason::instruction, address, code};
    if (info.si_code == SI_KERNEL)
        return {registers.reason(), 0, code};
    if (number == SIGBUS && info.si_code == BUS_ADRALN)
        return {Reason::alignment, address, code};
    return {address == code ? Reason::call : Reason::access, address, code};
}

} // namespace

// The guards, and the handlers of the signals. The handlers stay until a signal comes from code without a guard. The
// next guard installs them again, also above a handler that was installed meanwhile. Such a handler may call ours,
// which then goes on at the handler of the program that was there before.
//
// The handler takes no lock: a signal of other code may interrupt a thread that holds the lock, and in the child of a
// fork, a thread that is not there any more may hold the lock.
class FaultHandlers {
public:
    // Never destroyed, because a handler may run until the process ends.
    static FaultHandlers &instance() {
        static Published<FaultHandlers> made;
        return made.get();
    }

    FaultGuard::Place *add(FaultGuard::Owner &owner, const char *begin, const char *end, abi::Range read_only) {
        if (!is_current(guarded_signals[0])) {
            const std::lock_guard<std::mutex> held(mutex_);
            install();
        }
        FaultGuard::Place *const place = free_place();
        place->owner = &owner;
        place->begin = reinterpret_cast<std::uintptr_t>(begin);
        place->end = reinterpret_cast<std::uintptr_t>(end);
        place->read_only = read_only;
        protect(read_only, PROT_READ);
        return place;
    }

    static void remove(FaultGuard::Place *place) {
        protect(std::exchange(place->read_only, abi::Range{}), PROT_READ | PROT_WRITE);
        place->begin = place->end = 0;
        place->thread.store(0);
    }

private:
    static void handle(int number, siginfo_t *info, void *context) {
        const int error = errno;
        Registers registers(context);
        FaultHandlers &self = instance();
        const bool sent = is_sent(info);
        if (FaultGuard::Place *place = sent ? nullptr : self.place_of(registers.stack_pointer())) {
            FaultGuard::Owner &owner = *place->owner;
            registers.call(leave, &owner, owner.note(refused_by(number, *info, registers)));
        } else if (!sent && self.ends_protection(reinterpret_cast<std::uintptr_t>(info->si_addr))) {
            // The instruction runs again.
        } else if (!sent && self.passed_on_.is_dead_end(info, context)) {
            call_action(nullptr, number, info, context);
        } else if (sent || !is_current(number)) {
            call_action(self.of_program(number).get(), number, info, context);
        } else if (self.is_later_[place_in_signals(number)]) {
            call_action(self.replaced_[place_in_signals(number)], number, info, context);
        } else {
            self.give_back();
        }
        errno = error;
    }

    static void protect(abi::Range range, int how) {
        if (range.begin != range.end)
            mprotect(reinterpret_cast<void *>(range.begin), range.end - range.begin, how);
    }

    // Lets other code write to memory that kernels can only read. Whether the address is in such memory.
    bool ends_protection(std::uintptr_t address) const {
        for (FaultGuard::Place *place = first_.load(); place != nullptr; place = place->next) {
            const abi::Range range = place->read_only;
            if (address < range.begin || address >= range.end)
                continue;
            protect(range, PROT_READ | PROT_WRITE);
            return true;
        }
        return false;
    }

    // A place of this thread. Places are never destroyed, because handlers of other threads look at all places.
    FaultGuard::Place *free_place() {
        for (FaultGuard::Place *place = first_.load(); place != nullptr; place = place->next) {
            std::uintptr_t nobody = 0;
            if (place->thread.compare_exchange_strong(nobody, this_thread_number()))
                return place;
        }
        auto *const made = new FaultGuard::Place{{this_thread_number()}, 0, 0, {}, nullptr, first_.load()};
        while (!first_.compare_exchange_weak(made->next, made)) {
        }
        return made;
    }

    // Reads only places of this thread, which no other thread changes.
    FaultGuard::Place *place_of(std::uintptr_t stack_pointer) const {
        FaultGuard::Place *place = first_.load();
        while (place != nullptr && (place->thread.load() != this_thread_number() || stack_pointer < place->begin ||
                                    stack_pointer >= place->end))
            place = place->next;
        return place;
    }

    static bool is_current(int number) {
        SignalAction now{};
        return sigaction(number, nullptr, &now) == 0 && now.sa_sigaction == handle;
    }

    static std::size_t place_in_signals(int number) {
        std::size_t place = 0;
        while (guarded_signals[place] != number)
            ++place;
        return place;
    }

    void install() {
        SignalAction ours{};
        ours.sa_sigaction = handle;
        sigemptyset(&ours.sa_mask);
        ours.sa_flags = SA_SIGINFO | SA_ONSTACK; // The stack of a kernel may be full.
        for (std::size_t place = 0; place < guarded_signals.size(); ++place) {
            SignalAction now{};
            if (sigaction(guarded_signals[place], nullptr, &now) != 0 || now.sa_sigaction == handle)
                continue;
            // A signal may come as soon as the handler is installed, so the handler of before is known then.
            const SignalAction *const before = kept_action(now);
            if (before == nullptr)
                throw std::bad_alloc();
            ActionOfProgram &of_program = this->of_program(guarded_signals[place]);
            replaced_[place] = before;
            is_later_[place] = is_installed_[place].exchange(true) && !is_default(before) && !of_program.is_own(now);
            of_program.replaced(before, handle);
            sigaction(guarded_signals[place], &ours, nullptr);
        }
    }

    // Puts back the handlers of before, so that the instruction is executed again and reaches the handler of before
    // with the stack and the mask that this handler wants.
    void give_back() {
        for (std::size_t place = 0; place < guarded_signals.size(); ++place)
            if (is_current(guarded_signals[place])) {
                is_installed_[place] = false;
                sigaction(guarded_signals[place], replaced_[place], nullptr);
            }
    }

    ActionOfProgram &of_program(int number) {
        return number == SIGSEGV ? segv_action_of_program : others_of_program_[place_in_signals(number)];
    }

    std::mutex mutex_; // of install()
    std::array<std::atomic<const SignalAction *>, guarded_signals.size()> replaced_{}; // the last ones
    std::array<std::atomic<bool>, guarded_signals.size()> is_installed_{};             // until give_back()
    // Whether the handler that was replaced last was installed while this handler was there. Such a handler may be dead
    // by now, as that of Python's faulthandler is after its end, and nobody would notice that after give_back().
    std::array<std::atomic<bool>, guarded_signals.size()> is_later_{};
    std::array<ActionOfProgram, guarded_signals.size()> others_of_program_{}; // SIGSEGV's is not here
    std::atomic<FaultGuard::Place *> first_{nullptr};
    RepeatedFaults passed_on_;
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

FaultGuard::FaultGuard(Owner &owner, const char *begin, const char *end, abi::Range read_only) {
    handler_stack.use();
    place_ = FaultHandlers::instance().add(owner, begin, end, read_only);
}

FaultGuard::~FaultGuard() { FaultHandlers::remove(place_); }

#else

FaultGuard::FaultGuard(Owner &, const char *, const char *, abi::Range) {}

FaultGuard::~FaultGuard() = default;

#endif

} // namespace tcuda
