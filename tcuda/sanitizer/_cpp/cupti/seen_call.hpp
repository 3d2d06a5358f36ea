// A call of the driver, as CUPTI reports the call.
#pragma once

#include "sanitizer/_cpp/cupti/types.hpp"
#include "sanitizer/_cpp/watch/driver_watch.hpp"

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

    template <typename Parameters> const Parameters &as() const { return *static_cast<const Parameters *>(parameters); }
    watch::CallStream stream(Stream handle) const { return {context, per_thread ? watch::per_thread(handle) : handle}; }
};

// The stream of a copy or of a fill: the blocking calls have no parameter for the stream, and use the stream 0.
template <typename Parameters> watch::CallStream stream_of(const SeenCall &call, bool blocking) {
    return call.stream(blocking ? 0 : call.as<Parameters>().stream);
}

} // namespace tcuda::cupti
