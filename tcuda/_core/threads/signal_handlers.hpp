// What the core's handlers of signals need. A handler interrupts code that may hold any lock, also the locks of the
// allocator. So the functions that handlers call take no lock and no memory, and use no thread_local variable: the
// first use of such a variable in a thread allocates.
#pragma once

#include <csignal>
#include <pthread.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <mutex>
#include <new>

#if defined(__linux__) && (defined(__x86_64__) || defined(__aarch64__))
#include <ucontext.h>
#endif

namespace tcuda {

using SignalAction = struct sigaction;

inline std::uintptr_t this_thread_number() noexcept { return (std::uintptr_t)pthread_self(); }

// A number of each thread. A thread without a number has 0. At most `capacity` threads have a number: further threads
// keep 0.
template <std::size_t capacity> class ThreadNumbers {
public:
    std::uintptr_t get() const noexcept {
        for (const Entry &entry : entries_)
            if (entry.thread.load() == this_thread_number())
                return entry.number.load();
        return 0;
    }

    void set(std::uintptr_t number) noexcept {
        const std::uintptr_t self = this_thread_number();
        for (Entry &entry : entries_)
            if (entry.thread.load() == self) {
                entry.number.store(number);
                if (number == 0)
                    entry.thread.store(0);
                return;
            }
        for (Entry &entry : entries_) {
            std::uintptr_t nobody = 0;
            if (number != 0 && entry.thread.compare_exchange_strong(nobody, self)) {
                entry.number.store(number);
                return;
            }
        }
    }

private:
    struct Entry {
        std::atomic<std::uintptr_t> thread{0}, number{0};
    };

    std::array<Entry, capacity> entries_{};
};

// A number that is equal for equal numbers in the registers of integers of a signal's context.
inline std::uintptr_t hash_of_registers(const void *context) noexcept {
    std::uintptr_t result = 0;
    [[maybe_unused]] const auto add = [&result](auto number) {
        result = (result ^ static_cast<std::uintptr_t>(number)) * std::uintptr_t(0x9e3779b97f4a7c15) + 1;
    };
#if defined(__linux__) && defined(__x86_64__)
    for (const auto each : static_cast<const ucontext_t *>(context)->uc_mcontext.gregs)
        add(each);
#elif defined(__linux__) && defined(__aarch64__)
    const auto &registers = static_cast<const ucontext_t *>(context)->uc_mcontext;
    for (const auto each : registers.regs)
        add(each);
    add(registers.pc);
#else
    (void)context;
#endif
    return result;
}

// How often each thread has had the same fault in a row. Threads may share an entry: the count of a thread then begins
// again when another thread has a fault.
class RepeatedFaults {
public:
    // `fault` tells the faults of a thread apart.
    unsigned count(std::uintptr_t fault) noexcept {
        Entry &entry = entry_of_thread();
        const std::uintptr_t key = mixed(fault ^ mixed(this_thread_number()));
        if (entry.key.exchange(key) != key)
            entry.times.store(0);
        return entry.times.fetch_add(1) + 1;
    }
    void forget() noexcept { entry_of_thread().key.store(0); }

    // Counts a fault that is passed on to another handler. A handler that returns leads to the same fault again if the
    // handler has changed nothing. True if this thread has had so many equal faults, with the same numbers in all
    // registers, that the handler is dead, as that of Python's faulthandler is after its end.
    bool is_dead_end(const siginfo_t *info, const void *context) noexcept {
        constexpr unsigned most_equal_faults = 100;
        return count(hash_of_registers(context) ^ reinterpret_cast<std::uintptr_t>(info->si_addr)) > most_equal_faults;
    }

private:
    struct Entry {
        std::atomic<std::uintptr_t> key{0};
        std::atomic<unsigned> times{0};
    };

    static std::uintptr_t mixed(std::uintptr_t number) noexcept {
        const std::uintptr_t product = number * static_cast<std::uintptr_t>(0x9e3779b97f4a7c15);
        return product ^ product >> (sizeof product * 4);
    }
    Entry &entry_of_thread() noexcept { return entries_[mixed(this_thread_number()) % entries_.size()]; }

    std::array<Entry, 64> entries_{};
};

// A mutex that knows whether this thread holds it.
class OwnedMutex {
public:
    void lock() {
        mutex_.lock();
        holder_.store(this_thread_number());
    }
    void unlock() {
        holder_.store(0);
        mutex_.unlock();
    }
    bool is_held_here() const noexcept { return holder_.load() == this_thread_number(); }

private:
    std::mutex mutex_;
    std::atomic<std::uintptr_t> holder_{0};
};

// A copy of `action` that lives until the process ends, so that a handler can use the copy at any time. Equal actions
// have one copy. Null if the host has no memory. No handler of a signal may call this function.
inline const SignalAction *kept_action(const SignalAction &action) noexcept {
    struct Node {
        SignalAction action;
        Node *next;
    };
    static std::atomic<Node *> nodes{nullptr};
    Node *first = nodes.load();
    for (const Node *node = first; node != nullptr; node = node->next)
        if (node->action.sa_sigaction == action.sa_sigaction && node->action.sa_flags == action.sa_flags &&
            std::memcmp(&node->action.sa_mask, &action.sa_mask, sizeof action.sa_mask) == 0)
            return &node->action;
    Node *const made = new (std::nothrow) Node{action, first};
    if (made == nullptr)
        return nullptr;
    while (!nodes.compare_exchange_weak(made->next, made)) {
    }
    return &made->action;
}

// Whether the signal comes from a call, and not from an instruction.
inline bool is_sent(const siginfo_t *info) noexcept { return info->si_code <= 0; }

inline bool is_default(const SignalAction *action) noexcept {
    return action == nullptr ||
           ((action->sa_flags & SA_SIGINFO) == 0 && (action->sa_handler == SIG_DFL || action->sa_handler == SIG_IGN));
}

// Does in a handler what the system would do for `action`. Null stands for the default.
inline void call_action(const SignalAction *action, int number, siginfo_t *info, void *context) {
    if (is_default(action)) {
        std::signal(number, SIG_DFL); // the instruction is executed again, and ends the process
        if (is_sent(info))
            std::raise(number);
    } else if ((action->sa_flags & SA_SIGINFO) != 0) {
        action->sa_sigaction(number, info, context);
    } else {
        action->sa_handler(number);
    }
}

// The action of the program, which was there before the handlers of the core, for one signal. A handler of the core
// that another handler calls goes on here, and not at a second handler of the core, which might call the first one
// again.
class ActionOfProgram {
public:
    using Handler = void (*)(int, siginfo_t *, void *);

    // Called before `own`, a handler of the core, replaces `found`. The core has at most two handlers of a signal.
    void replaced(const SignalAction *found, Handler own) noexcept {
        Handler nobody = nullptr;
        if (first_own_.load() != own && !first_own_.compare_exchange_strong(nobody, own))
            second_own_.store(own);
        if (is_own(*found))
            return;
        if (is_default(found) || action_.load() == nullptr)
            action_.store(found);
    }

    // Whether `action` calls a handler of the core.
    bool is_own(const SignalAction &action) const noexcept {
        const Handler handler = action.sa_sigaction;
        return !is_default(&action) && (handler == first_own_.load() || handler == second_own_.load());
    }

    // Null if only handlers of the core have been replaced, which stands for the default.
    const SignalAction *get() const noexcept { return action_.load(); }

private:
    std::atomic<Handler> first_own_{nullptr}, second_own_{nullptr};
    std::atomic<const SignalAction *> action_{nullptr};
};

inline ActionOfProgram segv_action_of_program;

} // namespace tcuda
