// The thread that takes references to code objects for threads which have given Python's lock back.
#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <thread>
#include <vector>

#include "bindings/stack_table.hpp"

namespace tcuda {

// A callback of the driver must not take Python's lock: the thread that holds the lock may wait for a lock of the driver
// that the thread of the callback holds. So the keeper takes Python's lock, and the callback waits for the keeper at
// most for the patience of begin().
//
// No deadlock: the keeper holds nothing while it waits for Python's lock. `mutex_` is held for a few instructions only,
// by a thread that waits for nothing: under it, the table of stacks is the only other mutex that is taken. The wait of a
// callback gives the mutex back and has an end, with or without the keeper.
//
// No use after free: the keeper touches the code objects of a request under `mutex_`, and only while the thread of
// the request waits. That thread is in the call, so its frames keep the code objects alive.
class StackKeeper {
public:
    using Duration = std::chrono::steady_clock::duration;
    static constexpr int tries = 3; // failed waits in a row, after which callbacks do not wait for a while
    static constexpr int rest = 50; // the length of that while, in times the patience

    StackKeeper() = default;
    StackKeeper(const StackKeeper &) = delete;
    StackKeeper &operator=(const StackKeeper &) = delete;

    // The first begin() starts the thread, and the last end() ends the thread. `patience` is how long a callback waits
    // at most. The caller holds Python's lock; end() gives the lock back for a while. If the thread cannot be started,
    // keep() always returns false.
    void begin(Duration patience);
    void end();
    void end_all(); // at the end of the interpreter

    // Lets the table of stacks take references to the code objects of this thread's stack. The caller does not hold
    // Python's lock. False if the keeper has not got Python's lock in time.
    bool keep(const StackFrames &frames);

private:
    struct Request {
        const StackFrames *frames;
        bool done = false, kept = false;
    };

    void start();
    void run();
    void serve_until_end();
    void serve();

    std::mutex mutex_;
    std::condition_variable wanted_, done_;
    std::vector<Request *> requests_;
    std::thread thread_;
    int users_ = 0;
    bool running_ = false;
    int in_vain_ = 0;
    Duration patience_{};
    std::chrono::steady_clock::time_point no_wait_before_{};
};

// The keeper of the process. A forked child has a new keeper, which has no thread.
StackKeeper &stack_keeper();

} // namespace tcuda
