// Keys that tell streams apart. The key of a stream is its handle, except for the default streams: the legacy default
// stream has two handles, and the handle of the per-thread default stream means another stream in each thread.
#pragma once

#include <atomic>

#include "driver/driver.hpp"

namespace tcuda {

constexpr Stream legacy_stream = 1;     // another handle of the stream 0
constexpr Stream per_thread_stream = 2; // another stream in every thread

// The number of this thread. Numbers are not used again.
inline std::uintptr_t thread_number() {
    static std::atomic<std::uintptr_t> last{0};
    static thread_local const std::uintptr_t number = last.fetch_add(1, std::memory_order_relaxed) + 1;
    return number;
}

// The key of the per-thread default stream is an odd number made from the number of the thread. No handle is odd.
inline Stream key_of(Stream handle) {
    if (handle == per_thread_stream)
        return thread_number() << 1 | 1;
    return handle == legacy_stream ? 0 : handle;
}

// Finds the handle of a stream in this thread. The status is a failure if the stream is the default stream of another
// thread.
inline int handle_of(Stream key, Stream *handle) {
    *handle = (key & 1) == 0 ? key : per_thread_stream;
    return key_of(*handle) == key ? success : invalid_handle;
}

} // namespace tcuda
