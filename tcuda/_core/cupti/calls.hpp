// The calls of the driver that the watch is told of.
#pragma once

#include <cstddef>
#include <cstdint>

#include "cupti/types.hpp"
#include "watch/driver_watch.hpp"

namespace tcuda::cupti {

// A call of the driver at one of its sides.
struct SeenCall {
    watch::DriverWatch &watch;
    const void *parameters;
    Handle context;
    const char *symbol; // the name of the kernel, in a launch
    bool per_thread;    // whether the stream 0 is the per-thread default stream
    bool entered;       // otherwise the driver has made the call
    bool failed;

    template <typename Parameters> const Parameters &as() const {
        return *static_cast<const Parameters *>(parameters);
    }
    watch::CallStream stream(Stream handle) const {
        return {context, per_thread ? watch::per_thread(handle) : handle};
    }
};

// When the watch is told of a call.
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

// The call of an id; null if it is not watched.
const WatchedCall *watched_call(std::uint32_t id);

// The driver has loaded a cubin in this thread.
void tell_cubin(watch::DriverWatch &watch, const ModuleDescription &module);

} // namespace tcuda::cupti
