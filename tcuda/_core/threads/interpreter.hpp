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

    // How a thread of the core begins and ends that calls Python again and again. The result of Begin is what End
    // needs.
    using Begin = void *();
    using End = void(void *);

    static void connect(Leave *leave, Enter *enter, Begin *begin, End *end) {
        enter_.store(enter, std::memory_order_relaxed);
        end_.store(end, std::memory_order_relaxed);
        begin_.store(begin, std::memory_order_release);
        leave_.store(leave, std::memory_order_release);
    }

private:
    friend class Absence;
    friend class InterpreterThread;
    static inline std::atomic<Leave *> leave_{nullptr};
    static inline std::atomic<Enter *> enter_{nullptr};
    static inline std::atomic<Begin *> begin_{nullptr};
    static inline std::atomic<End *> end_{nullptr};
};

// The life of a thread of the core. The thread holds Python's lock only while the thread calls Python, and has one
// thread state of Python for its whole life. Python 3.11 makes and deletes a thread state under a lock, without the
// interpreter lock: a child that is forked at that moment waits for that lock for ever.
class InterpreterThread {
public:
    InterpreterThread() {
        if (const auto begin = Interpreter::begin_.load(std::memory_order_acquire))
            begun_ = begin();
    }
    ~InterpreterThread() {
        if (begun_ != nullptr)
            Interpreter::end_.load(std::memory_order_relaxed)(begun_);
    }
    InterpreterThread(const InterpreterThread &) = delete;
    InterpreterThread &operator=(const InterpreterThread &) = delete;

private:
    void *begun_ = nullptr;
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
