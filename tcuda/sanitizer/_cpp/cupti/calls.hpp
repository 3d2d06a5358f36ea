// The calls of the driver that the watch learns of.
#pragma once

#include <cstddef>
#include <cstdint>

#include "sanitizer/_cpp/cupti/seen_call.hpp"

namespace tcuda::cupti {

// When the watch learns of a call.
enum Sides : std::uint8_t {
    at_entry = 1,
    after_success = 2,
    after_failure = 4,
};

struct WatchedCall {
    std::uint32_t id; // CUpti_driver_api_trace_cbid
    const char *name;
    void (*tell)(const SeenCall &);
    std::uint8_t sides;
    bool per_thread;
};

struct WatchedCalls {
    const WatchedCall *first;
    std::size_t count;
    const WatchedCall *begin() const { return first; }
    const WatchedCall *end() const { return first + count; }
};
WatchedCalls watched_calls();

// The call of an id; null if the call is not watched.
const WatchedCall *watched_call(std::uint32_t id);

} // namespace tcuda::cupti
