#pragma once

#include <vector>

#include <sys/types.h>

#include "sanitizer/_cpp/cupti/library.hpp"
#include "sanitizer/_cpp/watch/driver_watch.hpp"

namespace tcuda::cupti {

// Tells a watch of all calls of the driver, from the constructor to end(). A process has at most one subscription. The
// callbacks run in the threads that call the driver.
class Subscription {
public:
    // Throws std::runtime_error if CUPTI refuses, or if there is a subscription already.
    Subscription(const Library &library, watch::DriverWatch &watch);
    ~Subscription() { end(); }
    Subscription(const Subscription &) = delete;
    Subscription &operator=(const Subscription &) = delete;

    // When the call returns, no thread is in a callback, and no thread will be. The caller does not hold Python's lock,
    // because a callback may wait for that lock. Does nothing in a forked child, and after the first call.
    void end() noexcept;

private:
    const Library &library_;
    const pid_t process_;
    Handle subscriber_ = 0;
    bool active_ = false;
    std::vector<std::pair<int, std::uint32_t>> enabled_; // domains and ids
};

// Lets the callbacks leave out the driver's calls of this thread.
class Unwatched {
public:
    Unwatched() { ++depth(); }
    ~Unwatched() { --depth(); }
    Unwatched(const Unwatched &) = delete;
    Unwatched &operator=(const Unwatched &) = delete;

    static int &depth() {
        static thread_local int depth = 0;
        return depth;
    }
};

} // namespace tcuda::cupti
