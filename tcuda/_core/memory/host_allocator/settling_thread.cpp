#include "memory/host_allocator/settling_thread.hpp"

#include <signal.h>

#include <algorithm>
#include <exception>
#include <system_error>
#include <utility>

#include "threads/interpreter.hpp"

namespace tcuda {
namespace {

thread_local bool is_settling_thread = false;

} // namespace

// The thread handles no signals of the program.
void SettlingThread::start() {
    const Lock lock(mutex_);
    if (thread_.joinable())
        return;
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    try {
        thread_ = std::thread([this, number = ++number_] { run(number); });
        wanted_ = true;
    } catch (const std::system_error &) {
    }
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

void SettlingThread::stop() noexcept {
    std::thread ended;
    {
        const std::lock_guard lock(mutex_);
        ended.swap(thread_);
        ++number_;
        woken_.notify_all();
    }
    if (!ended.joinable())
        return;
    if (is_settling_thread) { // a finalizer that runs in the thread
        ended.detach();
        return;
    }
    Absence absence;
    absence.leave(); // the thread may wait for Python's lock
    ended.join();
}

void SettlingThread::begin_rest(Lock &lock) {
    ++rests_;
    if (working_ == 0 || is_settling_thread)
        return;
    lock.leave_interpreter();
    rested_.wait_for(lock.held(), patience, [this] { return working_ == 0; });
}

void SettlingThread::end_rest() noexcept {
    if (--rests_ == 0)
        woken_.notify_all();
}

void SettlingThread::run(unsigned number) {
    const InterpreterThread interpreter;
    is_settling_thread = true;
    Lock lock(mutex_);
    auto pause = shortest_pause;
    while (number_ == number) {
        if (!wanted_ || rests_ != 0) {
            asleep_ = true;
            woken_.wait(lock.held());
            asleep_ = false;
            pause = shortest_pause;
            continue;
        }
        wanted_ = false;
        ++working_;
        bool left = true;
        try {
            left = settle_(lock);
        } catch (const std::exception &) { // without host memory, the blocks stay in doubt
        }
        --working_;
        wanted_ = wanted_ || left;
        if (rests_ != 0) {
            rested_.notify_all();
        } else if (left) {
            woken_.wait_for(lock.held(), pause);
            pause = std::min(2 * pause, longest_pause);
        }
    }
}

} // namespace tcuda
