#include "host_pages/page_watch.hpp"

#include <csignal>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <mutex>
#include <system_error>

#if defined(__linux__) && defined(__x86_64__)
#include <ucontext.h>
#endif

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

// The whole pages of `ranges`, in order and without overlaps.
Ranges whole_pages(const Ranges &ranges) {
    const std::uintptr_t page = static_cast<std::uintptr_t>(sysconf(_SC_PAGESIZE));
    Ranges whole;
    std::vector<std::uintptr_t> bounds;
    for (const WatchedRange &range : ranges) {
        const std::uintptr_t begin = (range.begin + page - 1) / page * page, end = range.end / page * page;
        if (begin < end) {
            whole.push_back({begin, end, range.reads});
            bounds.insert(bounds.end(), {begin, end});
        }
    }
    std::sort(bounds.begin(), bounds.end());
    Ranges parts;
    for (std::size_t place = 0; place + 1 < bounds.size(); ++place) {
        WatchedRange part{bounds[place], bounds[place + 1], false};
        bool covered = false;
        for (const WatchedRange &range : whole)
            if (range.begin <= part.begin && part.end <= range.end) {
                covered = true;
                part.reads = part.reads || range.reads;
            }
        if (covered && part.begin < part.end)
            parts.push_back(part);
    }
    return parts;
}

bool same(const WatchedRange &left, const WatchedRange &right) {
    return left.begin == right.begin && left.end == right.end && left.reads == right.reads;
}

bool contains(const Ranges &ranges, const WatchedRange &range) {
    return std::any_of(ranges.begin(), ranges.end(), [&](const WatchedRange &each) { return same(each, range); });
}

// The state of the watch. The handler takes the mutex, so no code under the mutex touches watched memory.
class State {
public:
    void replace(Ranges ranges, PageWatch::Seen seen) {
        const std::lock_guard<std::mutex> held(mutex_);
        if (!ranges.empty())
            install();
        seen_ = seen;
        for (const WatchedRange &range : watched_)
            if (!contains(ranges, range))
                open(range);
        watched_.swap(ranges);
        for (const WatchedRange &range : watched_)
            if (pauses_ == 0 && !contains(ranges, range))
                protect(range);
        if (watched_.empty())
            uninstall();
    }

    void pause() noexcept {
        const std::lock_guard<std::mutex> held(mutex_);
        if (pauses_++ == 0)
            for (const WatchedRange &range : watched_)
                open(range);
    }

    void resume() noexcept {
        const std::lock_guard<std::mutex> held(mutex_);
        if (--pauses_ == 0)
            for (const WatchedRange &range : watched_)
                protect(range);
    }

    // False if the address is not watched.
    bool handle(std::uintptr_t address, bool write) {
        PageWatch::Seen seen = nullptr;
        {
            const std::lock_guard<std::mutex> held(mutex_);
            const auto found =
                std::find_if(watched_.begin(), watched_.end(), [address](const WatchedRange &range) {
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

    // Calls the handler that was there before.
    void pass_on(int number, siginfo_t *info, void *context) {
        struct sigaction before;
        {
            const std::lock_guard<std::mutex> held(mutex_);
            before = before_;
        }
        if ((before.sa_flags & SA_SIGINFO) != 0) {
            before.sa_sigaction(number, info, context);
        } else if (before.sa_handler == SIG_DFL || before.sa_handler == SIG_IGN) {
            std::signal(number, SIG_DFL); // the access is made again, and ends the process
        } else {
            before.sa_handler(number);
        }
    }

private:
    // A range that the program has given back to the system has no pages: both functions then change nothing.
    static void protect(const WatchedRange &range) noexcept {
        mprotect(reinterpret_cast<void *>(range.begin), range.end - range.begin, range.reads ? PROT_NONE : PROT_READ);
    }
    static void open(const WatchedRange &range) noexcept {
        mprotect(reinterpret_cast<void *>(range.begin), range.end - range.begin, PROT_READ | PROT_WRITE);
    }

    // Installs the handler, also again if another library has installed its own since.
    void install();
    void uninstall() noexcept;

    std::mutex mutex_;
    Ranges watched_;
    PageWatch::Seen seen_ = nullptr;
    int pauses_ = 0;
    struct sigaction before_ {};
};

// Never destroyed, because the handler may run until the process ends.
State &state() {
    static State *const state = new State;
    return *state;
}

void handler(int number, siginfo_t *info, void *context) {
    static thread_local std::uintptr_t unknown = 0;
    const int error = errno;
    const auto address = reinterpret_cast<std::uintptr_t>(info->si_addr);
    const bool forbidden = info->si_code == SEGV_ACCERR; // the memory exists
    if (forbidden && state().handle(address, is_write(context))) {
        unknown = 0;
    } else if (forbidden && address != unknown) {
        unknown = address; // try once more: another thread may have ended the watch of this address just now
    } else {
        unknown = 0;
        state().pass_on(number, info, context);
    }
    errno = error;
}

void State::install() {
    struct sigaction now {};
    if (sigaction(SIGSEGV, nullptr, &now) == 0 && now.sa_sigaction == handler)
        return;
    struct sigaction ours {};
    ours.sa_sigaction = handler;
    sigemptyset(&ours.sa_mask);
    // The function that is told may touch other watched memory, so the signal is not blocked meanwhile.
    ours.sa_flags = SA_SIGINFO | SA_NODEFER;
    if (sigaction(SIGSEGV, &ours, &before_) != 0)
        throw std::system_error(errno, std::generic_category(), "the handler of SIGSEGV");
}

void State::uninstall() noexcept {
    struct sigaction now {};
    if (sigaction(SIGSEGV, nullptr, &now) == 0 && now.sa_sigaction == handler)
        sigaction(SIGSEGV, &before_, nullptr);
}

} // namespace

bool PageWatch::supported() noexcept {
#if defined(__linux__) && defined(__x86_64__)
    return true;
#else
    return false;
#endif
}

void PageWatch::watch(std::vector<WatchedRange> ranges, Seen seen) {
    state().replace(whole_pages(ranges), seen);
}

void PageWatch::end() noexcept {
    state().replace({}, nullptr);
}

PageWatch::Pause::Pause() noexcept {
    state().pause();
}

PageWatch::Pause::~Pause() {
    state().resume();
}

} // namespace tcuda
