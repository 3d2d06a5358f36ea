// The hand-over of Python's lock while a thread waits in the core.
#pragma once

#include <atomic>

namespace tcuda {

// How a thread gives Python's lock back and takes it again. The bindings connect the two functions. A program without
// Python leaves them unconnected, and nothing happens.
class Interpreter {
public:
    // Gives Python's lock back if this thread holds it. The result is what Enter needs, or null if the thread held
    // none.
    using Leave = void *();
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

// A thread without Python's lock: from leave() until the object ends, if the thread held the lock before.
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

} // namespace tcuda
