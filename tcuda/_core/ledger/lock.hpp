// The locks of the core, for threads that may hold the lock of Python's interpreter.
#pragma once

#include <atomic>
#include <mutex>

namespace tcuda {

// Python's interpreter, as far as threads of the core wait for it. Without Python nobody connects it, and it does nothing.
class Interpreter {
public:
    using Leave = void *(); // gives Python's lock back if this thread holds it, and returns what takes it again; else null
    using Enter = void(void *);

    static void connect(Leave *leave, Enter *enter) {
        enter_.store(enter, std::memory_order_relaxed);
        leave_.store(leave, std::memory_order_release);
    }

private:
    friend class Absence;
    static inline std::atomic<Leave *> leave_{nullptr};
    static inline std::atomic<Enter *> enter_{nullptr};
};

// This thread does without Python's lock, if it held it, from leave() until the end of the object.
class Absence {
public:
    Absence() = default;
    ~Absence() {
        if (left_ != nullptr)
            Interpreter::enter_.load(std::memory_order_relaxed)(left_);
    }
    Absence(const Absence &) = delete;
    Absence &operator=(const Absence &) = delete;

    void leave() {
        const auto leave = Interpreter::leave_.load(std::memory_order_acquire);
        if (left_ == nullptr && leave != nullptr)
            left_ = leave();
    }

private:
    void *left_ = nullptr;
};

// Holds a mutex. A thread that has to wait for it gives Python's lock back, and takes that again only after the mutex is
// free: whoever holds the mutex may be in a call of the driver that waits for a function which needs Python's lock.
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

    // Does without Python's lock from now on: before a call of the driver, or of a library, that may wait for a device.
    void leave_interpreter() { absence_.leave(); }

    std::unique_lock<std::mutex> &held() { return held_; }

private:
    Absence absence_; // ends last
    std::unique_lock<std::mutex> held_;
};

// The lock is given back while it lives.
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
