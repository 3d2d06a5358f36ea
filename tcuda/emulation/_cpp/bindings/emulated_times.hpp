// The time that work on emulated devices takes.
#pragma once

#include <nanobind/nanobind.h>

#include <utility>
#include <vector>

#include "emulation/_cpp/bindings/emulated_activity.hpp"

namespace tcuda {

// All times are nanoseconds, and times after the year 292 are that year. The classes of Python inherit from these two.

struct EmulatedClock {
    // `lock` is a lock of Python.
    explicit EmulatedClock(nanobind::object lock_)
        : lock(std::move(lock_)), acquire(lock.attr("acquire")), release(lock.attr("release")) {}

    const nanobind::object lock, acquire, release;
    long long now = 0;
};

struct EmulatedTimeline {
    long long ready = 0; // when the work of the stream is complete
    int device = 0, multiprocessors = 0;
    bool blocking = false; // whether the stream and the default stream of its device wait for each other

    // Returns the timeline in a Python object, whose class is that of timelines or a subclass.
    static EmulatedTimeline &of(nanobind::handle object) { return *nanobind::inst_ptr<EmulatedTimeline>(object); }
};

// The formula for the time of a kernel. A kernel takes `launch` nanoseconds, and then the time for its bytes or for its
// floating-point operations on `multiprocessors`; a kernel on a share of them takes longer.
struct KernelTime {
    long long launch = 0, bytes_per_nanosecond = 1, operations_per_nanosecond = 1, multiprocessors = 1;

    long long of(long long bytes, long long operations, long long share) const;
};

// Moves the clock and the streams of emulated devices. The caller holds the lock of the clock. The functions return -1
// with a Python error set if they fail.
class EmulatedTimes {
public:
    // `devices` has, for each device, the default stream and the activity. Each operation takes `call` nanoseconds of
    // the host. The binding keeps `clock` alive.
    EmulatedTimes(EmulatedClock &clock, nanobind::sequence devices, long long call);

    // The earliest start of an operation that is added to `timeline` now.
    long long start(const EmulatedTimeline &timeline) const;

    // Lets `timeline` be busy for `duration` as soon as possible. Returns the time of the end.
    long long occupy(EmulatedTimeline &timeline, long long duration);

    // Lets `timeline` be busy at least until `time`. Returns the time until which it is busy.
    long long extend(EmulatedTimeline &timeline, long long time);

    // Notes that `device` works from `start` to `end`. False with a Python error set if there is no such device.
    bool note(int device, long long start, long long end);

    // When all work of the device is complete that its streams were given so far, also streams that are gone.
    long long ready(int device) const;

    EmulatedClock &clock() const { return clock_; }

    // Borrowed reference; null if there is no such device.
    PyObject *default_stream(int device) const;

private:
    struct Device {
        nanobind::object default_stream;
        nanobind::object activity;
        // When the work of all streams is complete, and of those that the default stream waits for. The times of
        // streams only grow, so no list of the streams is needed.
        long long ready = 0, blocking_ready = 0;
    };

    // Null with a Python error set if there is no such device.
    Device *device(int index);
    const Device *device(int index) const;
    static void extend(EmulatedTimeline &timeline, Device &device, long long time);
    long long start(const EmulatedTimeline &timeline, const Device &device) const;
    void note(const Device &device, long long start, long long end) const;

    EmulatedClock &clock_;
    const long long call_;
    std::vector<Device> devices_;
};

// Adds the classes to the module.
void bind_emulated_times(nanobind::module_ &module);

} // namespace tcuda
