// The lock of a mutex, for threads that may hold Python's lock. DESIGN.md has the rules.
#pragma once

#include <mutex>

#include "threads/interpreter.hpp"

namespace tcuda {

// Holds a mutex. A thread that has to wait for the mutex gives Python's lock back first, and takes Python's lock again
// only after the mutex is free: the thread that holds the mutex may be in a call of the driver, and that call may wait
// for a host function which needs Python's lock.
class Lock {
public:
    explicit Lock(std::mutex &mutex) : held_(mutex, std::defer_lock) { lock(); }
    Lock(const Lock &) = delete;
    Lock &operator=(const Lock &) = delete;

    void lock() {
        if (!held_.try_lock()) {
            absence_.leave();
            held_.lock();
        }
    }
    void unlock() { held_.unlock(); }

    // Gives Python's lock back until this object ends. Called before a call of the driver, or of a library, that may
    // wait for a device.
    void leave_interpreter() { absence_.leave(); }

    std::unique_lock<std::mutex> &held() { return held_; }

private:
    Absence absence_; // declared first, so that it ends after the mutex is free
    std::unique_lock<std::mutex> held_;
};

// A time without the lock: from the construction to the end of the object.
class Unlocked {
public:
    explicit Unlocked(Lock &lock) : lock_(lock) { lock_.unlock(); }
    ~Unlocked() { lock_.lock(); }
    Unlocked(const Unlocked &) = delete;
    Unlocked &operator=(const Unlocked &) = delete;

private:
    Lock &lock_;
};

} // namespace tcuda
