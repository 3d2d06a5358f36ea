// A thread that settles freed page-locked memory, so that allocations find the memory free and need not ask a device.
#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>

#include "threads/lock.hpp"

namespace tcuda {

// The mutex of the allocator guards all state. The thread sleeps while no freed block is in doubt. While a block is in
// doubt, the thread asks again after a pause, which becomes longer.
//
// A child of fork() has no such thread, and must neither use nor destroy the object: threads of the parent may be in
// the condition variables.
class SettlingThread {
public:
    // `settle` is called in the thread, with the lock, and may give the lock back for a while. `settle` returns whether
    // a block is still in doubt.
    SettlingThread(std::mutex &mutex, std::function<bool(Lock &)> settle) : mutex_(mutex), settle_(std::move(settle)) {}
    SettlingThread(const SettlingThread &) = delete;
    SettlingThread &operator=(const SettlingThread &) = delete;

    // Called without the lock. start() does nothing if the thread runs, or if the system has no room for a thread.
    // stop() waits for the end of the thread, and gives Python's lock back meanwhile.
    void start();
    void stop() noexcept;

    // A block was freed. Called with the lock.
    void wake() noexcept {
        wanted_ = true;
        if (asleep_)
            woken_.notify_one();
    }

    // Whether the thread asks about blocks at this moment. Called with the lock.
    bool is_working() const { return working_ != 0; }

    // From begin_rest() to end_rest(), the thread asks nothing. Called with the lock. begin_rest() waits for the end of
    // a question without Python's lock, and at most for `patience`: the question may need a lock that the caller holds.
    static constexpr std::chrono::milliseconds patience{50};
    void begin_rest(Lock &lock);
    void end_rest() noexcept;

private:
    static constexpr std::chrono::microseconds shortest_pause{100}, longest_pause{1000};

    void run(unsigned number);

    std::mutex &mutex_;
    const std::function<bool(Lock &)> settle_;
    std::condition_variable woken_, rested_;
    std::thread thread_;
    unsigned number_ = 0; // of the thread that is to run; other threads end
    int working_ = 0, rests_ = 0;
    bool asleep_ = false;
    bool wanted_ = false; // whether a block may be in doubt
};

// A time in which the thread asks nothing, so that no block is with the thread.
class SettlingRest {
public:
    SettlingRest(SettlingThread &thread, Lock &lock) : thread_(thread) { thread_.begin_rest(lock); }
    ~SettlingRest() { thread_.end_rest(); }
    SettlingRest(const SettlingRest &) = delete;
    SettlingRest &operator=(const SettlingRest &) = delete;

private:
    SettlingThread &thread_;
};

} // namespace tcuda
