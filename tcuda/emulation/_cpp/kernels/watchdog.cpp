#include "emulation/_cpp/kernels/watchdog.hpp"

#include <chrono>
#include <condition_variable>
#include <csignal>
#include <mutex>
#include <system_error>
#include <thread>

#include "emulation/_cpp/kernels/grid.hpp"
#include "threads/published.hpp"

namespace tcuda {
namespace {

constexpr auto interval = std::chrono::milliseconds(50);
constexpr int idle_intervals = 20; // intervals before the thread waits for a notification, which costs a system call

} // namespace

class Watchdog {
public:
    static Watchdog &instance() {
        static Published<Watchdog> made;
        return made.get();
    }

    void add(Watch *watch) {
        const std::lock_guard<std::mutex> lock(mutex_);
        watch->next_ = first_;
        if (first_ != nullptr)
            first_->previous_ = watch;
        first_ = watch;
        if (!started_)
            start();
        else if (asleep_)
            woken_.notify_one();
    }

    void remove(Watch *watch) {
        const std::lock_guard<std::mutex> lock(mutex_);
        (watch->previous_ == nullptr ? first_ : watch->previous_->next_) = watch->next_;
        if (watch->next_ != nullptr)
            watch->next_->previous_ = watch->previous_;
    }

private:
    // The thread takes no signals: a signal must interrupt the thread of the program that waits for the signal. If the
    // system has no room for a thread, the grid runs without interruptions, and the next grid tries again.
    void start() noexcept {
        sigset_t all, before;
        sigfillset(&all);
        pthread_sigmask(SIG_SETMASK, &all, &before);
        try {
            std::thread([this] { run(); }).detach();
            started_ = true;
        } catch (const std::system_error &) {
        }
        pthread_sigmask(SIG_SETMASK, &before, nullptr);
    }

    void run() {
        std::unique_lock<std::mutex> lock(mutex_);
        for (int idle = 0;;) {
            if (idle == idle_intervals) {
                asleep_ = true;
                woken_.wait(lock, [this] { return first_ != nullptr; });
                asleep_ = false;
                idle = 0;
            }
            lock.unlock();
            std::this_thread::sleep_for(interval);
            lock.lock();
            idle = first_ == nullptr ? idle + 1 : 0;
            for (Watch *watch = first_; watch != nullptr; watch = watch->next_) {
                if (watch->seen_)
                    watch->grid_.interrupt();
                watch->seen_ = true;
            }
        }
    }

    std::mutex mutex_;
    std::condition_variable woken_;
    Watch *first_ = nullptr;
    bool started_ = false;
    bool asleep_ = false;
};

Watch::Watch(Grid &grid) : grid_(grid), next_(nullptr) { Watchdog::instance().add(this); }

Watch::~Watch() { Watchdog::instance().remove(this); }

} // namespace tcuda
