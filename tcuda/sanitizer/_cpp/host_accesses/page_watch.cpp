#include "sanitizer/_cpp/host_accesses/page_watch.hpp"

#include <csignal>
#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>
#include <unwind.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>

#if defined(__linux__) && defined(__x86_64__)
#include <ucontext.h>
#endif

#include "threads/published.hpp"
#include "threads/signal_handlers.hpp"

namespace tcuda {
namespace {

using Ranges = std::vector<WatchedRange>;

// Whether the access that has raised the signal is a write.
bool is_write(const void *context) noexcept {
#if defined(__linux__) && defined(__x86_64__)
    constexpr int write_bit = 2; // of the error code of a page fault
    return (static_cast<const ucontext_t *>(context)->uc_mcontext.gregs[REG_ERR] & write_bit) != 0;
#else
    (void)context;
    return false;
#endif
}

// The code of this thread that signals have interrupted and that has not gone on yet.
unsigned interruptions() noexcept {
    unsigned count = 0;
    _Unwind_Backtrace(
        [](_Unwind_Context *context, void *counted) {
            int interrupted = 0;
            _Unwind_GetIPInfo(context, &interrupted);
            *static_cast<unsigned *>(counted) += interrupted != 0 ? 1 : 0;
            return _URC_NO_REASON;
        },
        &count);
    return count;
}

std::uintptr_t page_size() noexcept { return static_cast<std::uintptr_t>(sysconf(_SC_PAGESIZE)); }

bool is_mapped(void *address) noexcept {
    const std::uintptr_t page = page_size();
    unsigned char state;
    return mincore(reinterpret_cast<void *>(reinterpret_cast<std::uintptr_t>(address) / page * page), 1, &state) == 0;
}

// The signal of each thread that is passed on to another handler now.
ThreadNumbers<64> passed;

const siginfo_t *passed_here() noexcept { return reinterpret_cast<const siginfo_t *>(passed.get()); }

// Whether another handler has sent the signal: a handler that was installed later, such as that of Python's
// faulthandler, may install the handler before again, and raise the signal that it got.
bool is_handed_on(const siginfo_t *info) noexcept {
    const siginfo_t *const outer = passed_here();
    const bool may_be_access = outer == nullptr || !is_sent(outer);
    return may_be_access && info->si_code == SI_TKILL && info->si_pid == getpid() && interruptions() > 1;
}

// The whole pages of `ranges`, in order and without overlaps.
Ranges whole_pages(const Ranges &ranges) {
    struct Bound {
        std::uintptr_t place;
        int ranges, reads; // how many more ranges there are from here on, and how many more of them notice reads
    };
    const std::uintptr_t page = page_size();
    std::vector<Bound> bounds;
    for (const WatchedRange &range : ranges) {
        const std::uintptr_t begin = (range.begin + page - 1) / page * page, end = range.end / page * page;
        if (begin < end) {
            bounds.push_back({begin, 1, range.reads ? 1 : 0});
            bounds.push_back({end, -1, range.reads ? -1 : 0});
        }
    }
    std::sort(bounds.begin(), bounds.end(),
              [](const Bound &left, const Bound &right) { return left.place < right.place; });
    Ranges parts;
    int open = 0, reads = 0;
    for (std::size_t place = 0; place + 1 < bounds.size(); ++place) {
        open += bounds[place].ranges;
        reads += bounds[place].reads;
        if (open > 0 && bounds[place].place < bounds[place + 1].place)
            parts.push_back({bounds[place].place, bounds[place + 1].place, reads > 0});
    }
    return parts;
}

// Whether `range` is one of `ranges`, which are in order.
bool contains(const Ranges &ranges, const WatchedRange &range) {
    const auto found =
        std::lower_bound(ranges.begin(), ranges.end(), range.begin,
                         [](const WatchedRange &each, std::uintptr_t begin) { return each.begin < begin; });
    return found != ranges.end() && found->begin == range.begin && found->end == range.end &&
           found->reads == range.reads;
}

// How often the keeper looks whether the handler is still installed. Until then, a thread may have the same fault again
// and again.
constexpr auto interval = std::chrono::milliseconds(1);
constexpr int idle_intervals = 100; // without protected pages, before the keeper ends

// The state of the watch. The handler takes the mutex for an access to memory that exists, unless its thread holds the
// mutex. No code under the mutex touches watched memory. The handler reads the handlers of before without the mutex.
class State {
public:
    void replace(Ranges ranges, PageWatch::Seen seen) {
        const std::lock_guard<OwnedMutex> held(mutex_);
        if (!ranges.empty())
            install();
        seen_ = seen;
        for (const WatchedRange &range : watched_)
            if (!contains(ranges, range))
                open(range);
        watched_.swap(ranges);
        note_bounds();
        for (const WatchedRange &range : watched_)
            if (pauses_ == 0 && !contains(ranges, range))
                protect(range);
        if (watched_.empty())
            uninstall();
        else
            start_keeper();
    }

    void pause() noexcept {
        const std::lock_guard<OwnedMutex> held(mutex_);
        if (pauses_++ == 0)
            for (const WatchedRange &range : watched_)
                open(range);
    }

    void resume() noexcept {
        const std::lock_guard<OwnedMutex> held(mutex_);
        if (--pauses_ != 0 || watched_.empty())
            return;
        try_to_install();
        start_keeper();
        for (const WatchedRange &range : watched_)
            protect(range);
    }

    bool watches() const noexcept { return end_.load(std::memory_order_relaxed) != 0; }

    PageWatch::Touch touch(std::uintptr_t begin, std::uintptr_t end, bool write) noexcept {
        if (end <= begin_.load(std::memory_order_relaxed) || end_.load(std::memory_order_relaxed) <= begin ||
            mutex_.is_held_here())
            return {0, nullptr};
        const std::lock_guard<OwnedMutex> held(mutex_);
        const auto found = std::find_if(watched_.begin(), watched_.end(), [&](const WatchedRange &range) {
            return range.begin < end && begin < range.end && (write || range.reads);
        });
        if (pauses_ > 0 || found == watched_.end())
            return {0, nullptr};
        open(*found);
        const std::uintptr_t address = std::max(begin, found->begin);
        watched_.erase(found);
        return {address, seen_};
    }

    void keep_handler() noexcept {
        if (!watches() || mutex_.is_held_here())
            return;
        const std::lock_guard<OwnedMutex> held(mutex_);
        install_again();
    }

    // False if the address is not watched.
    bool handle(std::uintptr_t address, bool write) {
        if (mutex_.is_held_here())
            return false;
        PageWatch::Seen seen = nullptr;
        {
            const std::lock_guard<OwnedMutex> held(mutex_);
            const auto found = std::find_if(watched_.begin(), watched_.end(), [address](const WatchedRange &range) {
                return range.begin <= address && address < range.end;
            });
            if (found == watched_.end())
                return false;
            open(*found);
            if (pauses_ > 0)
                return true;
            watched_.erase(found);
            seen = seen_;
        }
        seen(address, write);
        return true;
    }

    // Calls the handler that was there before. If that handler was installed between two installations of this one, the
    // earlier handler may pass the signal back to this one. The signal then goes to the first handler.
    void pass_on(int number, siginfo_t *info, void *context) {
        const std::uintptr_t outer = passed.get();
        passed.set(reinterpret_cast<std::uintptr_t>(info));
        ++passing_;
        call_action(outer == 0 ? before_ : first_, number, info, context);
        --passing_;
        passed.set(outer);
        if (info->si_code == SEGV_MAPERR && !is_mapped(info->si_addr))
            handed_on(); // the handler does nothing any more, as that of Python's faulthandler after its end
    }

    // A fork waits until no thread changes the watch. The keeper ends before, because Python warns of threads that are
    // there at a fork. The next change of the watch starts the keeper again. The child has no devices that use the
    // memory.
    void before_fork() noexcept {
        for (mutex_.lock(); keeper_.joinable(); mutex_.lock()) {
            std::thread ended = std::move(keeper_);
            keeps_ = false;
            mutex_.unlock();
            ended.join();
        }
    }
    void after_fork() noexcept { mutex_.unlock(); }
    void after_fork_in_child() noexcept {
        for (const WatchedRange &range : watched_)
            open(range);
        watched_.clear();
        note_bounds();
        pauses_ = 0;
        uninstall();
        mutex_.unlock();
    }

    // A later handler has taken itself away.
    void handed_on() noexcept { before_ = first_.load(); }

    bool has_later_handler() const noexcept { return before_.load() != first_.load(); }

private:
    // A range that the program has given back to the system has no pages: both functions then change nothing.
    static void protect(const WatchedRange &range) noexcept {
        mprotect(reinterpret_cast<void *>(range.begin), range.end - range.begin, range.reads ? PROT_NONE : PROT_READ);
    }
    static void open(const WatchedRange &range) noexcept {
        mprotect(reinterpret_cast<void *>(range.begin), range.end - range.begin, PROT_READ | PROT_WRITE);
    }

    void note_bounds() noexcept {
        begin_.store(watched_.empty() ? 0 : watched_.front().begin, std::memory_order_relaxed);
        end_.store(watched_.empty() ? 0 : watched_.back().end, std::memory_order_relaxed);
    }

    // Installs the handler, also again if another library has installed its own since.
    void install();
    bool try_to_install() noexcept;
    void uninstall() noexcept;

    // The keeper is a thread that installs the handler again if the program has installed another one. Such a handler
    // may return without a change, and then the thread that touches a protected page would have the same fault for
    // ever. Without room for a thread, the next change of the watch tries again.
    void start_keeper() noexcept;
    void keep() noexcept;
    bool keep_once(int &idle) noexcept; // false at the end of the keeper
    bool install_again() noexcept;      // false if no pages are protected

    OwnedMutex mutex_;
    Ranges watched_; // in order
    std::atomic<std::uintptr_t> begin_{0}, end_{0}; // of the ranges when they changed last; 0 if there are none
    PageWatch::Seen seen_ = nullptr;
    int pauses_ = 0;
    std::atomic<const SignalAction *> before_{nullptr}; // the handler that was installed last before this one
    std::atomic<const SignalAction *> first_{nullptr}; // the handler that was there when this one was installed first
    bool has_first_ = false;
    std::atomic<int> passing_{0}; // threads whose signals are passed on now
    std::thread keeper_; // joinable also between its end and the next start
    bool keeps_ = false;
};

State &state() {
    static Published<State> state;
    return state.get();
}

[[maybe_unused]] const int registered =
    pthread_atfork([] { state().before_fork(); }, [] { state().after_fork(); }, [] { state().after_fork_in_child(); });

// The accesses to addresses that are not watched, and the faults that were passed on.
RepeatedFaults unknown, passed_on;

void handler(int number, siginfo_t *info, void *context) {
    const int error = errno;
    const auto address = reinterpret_cast<std::uintptr_t>(info->si_addr);
    const bool forbidden = info->si_code == SEGV_ACCERR; // the memory exists
    if (forbidden && state().handle(address, is_write(context))) {
        unknown.forget();
    } else if (forbidden && unknown.count(address) == 1) {
        // Try once more: another thread may have ended the watch of this address just now.
    } else if (is_handed_on(info)) {
        state().handed_on(); // the access is made again, and its signal comes here: this handler is installed again
    } else if (!is_sent(info) && passed_on.is_dead_end(info, context)) {
        unknown.forget();
        passed_on.forget();
        if (state().has_later_handler())
            state().handed_on();
        else
            call_action(nullptr, number, info, context);
    } else {
        unknown.forget();
        state().pass_on(number, info, context);
    }
    errno = error;
}

void State::install() {
    if (!try_to_install())
        throw std::system_error(errno, std::generic_category(), "the handler of SIGSEGV");
}

bool State::try_to_install() noexcept {
    SignalAction now{};
    if (sigaction(SIGSEGV, nullptr, &now) != 0)
        return false;
    if (now.sa_sigaction == handler)
        return true;
    // A signal may come as soon as the handler is installed, so the handler of before is known then.
    const SignalAction *const before = kept_action(now);
    if (before == nullptr)
        return false;
    before_ = before;
    if (!std::exchange(has_first_, true))
        first_ = before;
    segv_action_of_program.replaced(before, handler);
    SignalAction ours{};
    ours.sa_sigaction = handler;
    sigemptyset(&ours.sa_mask);
    // The function that is told may touch other watched memory, so the signal is not blocked meanwhile.
    ours.sa_flags = SA_SIGINFO | SA_NODEFER;
    return sigaction(SIGSEGV, &ours, nullptr) == 0;
}

void State::uninstall() noexcept {
    struct sigaction now{};
    if (sigaction(SIGSEGV, nullptr, &now) != 0 || now.sa_sigaction != handler)
        return;
    const SignalAction *const before = before_;
    sigaction(SIGSEGV, before, nullptr);
    has_first_ = before != first_; // a later handler may still hand signals on to this one
}

// The thread handles no signals of the program.
void State::start_keeper() noexcept {
    if (keeps_)
        return;
    if (keeper_.joinable())
        keeper_.join(); // at once: the thread has taken the mutex for the last time
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    try {
        keeper_ = std::thread([this] { keep(); });
        keeps_ = true;
    } catch (const std::system_error &) {
    }
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

void State::keep() noexcept {
    for (int idle = 0; keep_once(idle);)
        std::this_thread::sleep_for(interval);
}

bool State::keep_once(int &idle) noexcept {
    const std::lock_guard<OwnedMutex> held(mutex_);
    // After before_fork(), another thread may be the keeper already.
    if (!keeps_ || keeper_.get_id() != std::this_thread::get_id())
        return false;
    idle = install_again() ? 0 : idle + 1;
    keeps_ = idle < idle_intervals;
    return keeps_;
}

bool State::install_again() noexcept {
    if (pauses_ > 0 || watched_.empty())
        return false;
    SignalAction now{};
    // While a kernel of an emulated device runs, the handler of the core for kernels is above this one. A handler that
    // reports a crash, such as that of faulthandler, takes itself away and then ends the process.
    if (passing_ == 0 && sigaction(SIGSEGV, nullptr, &now) == 0 && !segv_action_of_program.is_own(now))
        try_to_install();
    return true;
}

} // namespace

bool PageWatch::supported() noexcept {
#if defined(__linux__) && defined(__x86_64__)
    return true;
#else
    return false;
#endif
}

std::uintptr_t PageWatch::page_end(std::uintptr_t address) noexcept {
    const std::uintptr_t page = page_size();
    return (address + page - 1) / page * page;
}

void PageWatch::watch(std::vector<WatchedRange> ranges, Seen seen) { state().replace(whole_pages(ranges), seen); }

void PageWatch::end() noexcept { state().replace({}, nullptr); }

bool PageWatch::watches() noexcept { return state().watches(); }

PageWatch::Touch PageWatch::touch(std::uintptr_t begin, std::uintptr_t end, bool write) noexcept {
    return state().touch(begin, end, write);
}

void PageWatch::keep_handler() noexcept { state().keep_handler(); }

PageWatch::Pause::Pause() noexcept { state().pause(); }

PageWatch::Pause::~Pause() { state().resume(); }

} // namespace tcuda
