// The current device of each thread, and its current streams.
#pragma once

#include <nanobind/nanobind.h>

#include <utility>
#include <vector>

namespace tcuda {

// The thread keeps its state in its dictionary, so the state ends with the thread. Finalizers that run later in that
// thread find a new state.
class EmulatedThread {
public:
    struct State {
        int device = 0;
        std::vector<nanobind::object> streams; // the current stream of each device
        std::vector<std::pair<int, nanobind::object>> entered; // the streams that were entered, with their devices
    };

    // `default_stream` is the current stream of each device at first.
    EmulatedThread(std::size_t devices, nanobind::object default_stream);

    // The state of the calling thread. Null with a Python error set if there is no memory for the state.
    State *state() const;

    // The functions below raise a Python error as an exception.

    // The current stream of `device`, or of the current device if `device` is -1.
    nanobind::object stream(int device) const;

    // Makes `stream` current, until leave() if the stream is `entered`. Raises RuntimeError if the stream is not on the
    // current device.
    void use(nanobind::object stream, bool entered) const;

    // Restores the stream that was entered on the same device before the last one. Raises IndexError if there is no
    // last one.
    void leave() const;

private:
    const std::size_t devices_;
    const nanobind::object default_stream_, key_; // the key is that in the dictionary of each thread
};

// Adds the class to the module.
void bind_emulated_thread(nanobind::module_ &module);

} // namespace tcuda
