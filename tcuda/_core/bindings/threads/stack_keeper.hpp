// The thread that notes the stacks of threads which have given Python's lock back.
#pragma once

#include <Python.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <thread>
#include <vector>

#include "memory/allocator/block.hpp"

namespace tcuda {

// A callback of the driver must not take Python's lock: the thread that holds the lock may wait for a lock of the
// driver that the thread of the callback holds. So the keeper takes Python's lock, and the callback waits for the
// keeper at most for the patience of begin().
//
// No deadlock: the keeper holds nothing while it waits for Python's lock. `mutex_` is held while frames are read, which
// runs no Python code and waits for nothing but the mutex of the table of stacks. The wait of a callback gives the
// mutex back and has an end, with or without the keeper.
//
// Frames stand still: the keeper reads the frames of a thread under `mutex_`, and only while the thread waits.
class StackKeeper {
public:
    using Duration = std::chrono::steady_clock::duration;
    static constexpr int tries = 3; // failed waits in a row, after which callbacks do not wait for a while
    static constexpr int rest = 50; // the length of that while, in times the patience
    static constexpr std::chrono::microseconds wakefulness{50}; // how long both sides look before they sleep

    StackKeeper() = default;
    StackKeeper(const StackKeeper &) = delete;
    StackKeeper &operator=(const StackKeeper &) = delete;

    // The first begin() starts the thread, and the last end() ends the thread. `patience` is how long a callback waits
    // at most. The caller holds Python's lock; end() and close() give the lock back for a while. If the thread cannot
    // be started, no stack has frames.
    void begin(Duration patience);
    void end();
    void close(); // at the end of the interpreter: nothing begins after it

    // The stack of this thread, which does not hold Python's lock; stack_without_frames if the keeper has not got
    // Python's lock in time.
    StackId note();

private:
    struct Request {
        PyThreadState *thread = nullptr;
        StackId noted = stack_without_frames;
        std::atomic<bool> done{false}; // from then on, the keeper does not touch the request
    };

    void start();
    void stop();
    void run();
    void serve_until_end();
    void serve();
    // Looks again and again for a while, because to sleep and to be woken takes longer than a note.
    template <typename Condition> static void look_for(Condition condition);

    std::mutex mutex_;
    std::condition_variable wanted_, done_;
    std::vector<Request *> requests_;
    std::atomic<bool> has_requests_{false}; // read without the mutex
    std::thread thread_;
    int users_ = 0;
    bool running_ = false, closed_ = false;
    int in_vain_ = 0;
    Duration patience_{};
    std::chrono::steady_clock::time_point no_wait_before_{};
};

// The keeper of the process. A forked child has a new keeper, which has no thread.
StackKeeper &stack_keeper();

} // namespace tcuda
