// What tells streams apart: their handles, but for the two default streams.
#pragma once

#include <atomic>

#include "driver/driver.hpp"

namespace tcuda {

constexpr Stream legacy_stream = 1;     // another name of the stream 0
constexpr Stream per_thread_stream = 2; // a stream of its own in every thread

// A number that no other thread has, nor ever had.
inline std::uintptr_t thread_number() {
    static std::atomic<std::uintptr_t> last{0};
    static thread_local const std::uintptr_t number = last.fetch_add(1, std::memory_order_relaxed) + 1;
    return number;
}

// The same handle means another stream in each thread, so an odd number stands for it, which no handle is.
inline Stream key_of(Stream handle) {
    if (handle == per_thread_stream)
        return thread_number() << 1 | 1;
    return handle == legacy_stream ? 0 : handle;
}

// The handle of a stream in this thread; an error if it is the default stream of another thread.
inline int handle_of(Stream key, Stream *handle) {
    *handle = (key & 1) == 0 ? key : per_thread_stream;
    constexpr int invalid_resource_handle = 400;
    return key_of(*handle) == key ? success : invalid_resource_handle;
}

} // namespace tcuda
