// The time that work on emulated devices takes.
#pragma once

#include <nanobind/nanobind.h>

#include <vector>

#include "bindings/python/attribute.hpp"

namespace tcuda {

// Moves the clock and the streams of emulated devices. All times are nanoseconds, and times after the year 292 are that
// year. The caller holds the lock of the clock. The functions return -1 with a Python error set if they fail.
class EmulatedTimes {
public:
    // `clock` has the time in `_now`. `timeline` is the class of the streams. `devices` has, for each device, the
    // default stream, the list of the other streams that the default stream waits for, and a function that takes the
    // start and the end of an operation. Each operation takes `call` nanoseconds of the host.
    EmulatedTimes(nanobind::object clock, nanobind::object timeline, nanobind::sequence devices, long long call);

    // The earliest start of an operation that is added to `timeline` now.
    long long start(PyObject *timeline) const;

    // Lets `timeline` be busy for `duration` as soon as possible. Returns the time of the end.
    long long occupy(PyObject *timeline, long long duration) const;

    // The index of the device of `timeline`, and the multiprocessors of its kernels.
    int device_of(PyObject *timeline) const;
    long long multiprocessors_of(PyObject *timeline) const;

    // Borrowed reference; null if there is no such device.
    PyObject *default_stream(int device) const;

private:
    struct Device {
        nanobind::object default_stream, blocking, note;
    };

    const Device *device(PyObject *timeline) const;
    long long start(PyObject *timeline, const Device &device) const;
    bool note(const Device &device, long long start, PyObject *end) const;
    bool wait_for(PyObject *timeline, long long *start) const;

    const nanobind::object clock_;
    const Attribute now_, ready_, blocking_, device_, multiprocessors_;
    const long long call_;
    std::vector<Device> devices_;
};

// Adds the class to the module.
void bind_emulated_times(nanobind::module_ &module);

} // namespace tcuda
