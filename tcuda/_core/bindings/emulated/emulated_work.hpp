// Work of emulated devices that is done in the call that launches the work.
#pragma once

#include <nanobind/nanobind.h>

#include <cstdint>

#include "bindings/emulated/emulated_times.hpp"
#include "bindings/python/owned.hpp"
#include "driver/driver.hpp"

namespace tcuda {

// Begins and ends the kernels that a caller runs itself. Without a runtime, and while there is an obstacle, no work is
// done at once.
class EmulatedWork {
public:
    // Uses a runtime. `times` moves its clock, and `acquire` and `release` are the methods of the lock of the clock.
    // `thread` has the current device, and `streams` has the current streams as the first item of a pair. Both are
    // `threading.local` objects. `default_stream` is the default stream among the streams. `created` has the other
    // streams of the runtime by handle. Each of `obstacles` is a list that is empty if work is done at once. A kernel
    // takes `launch` nanoseconds, and then the time for its bytes or for its floating-point operations on
    // `multiprocessors`; a stream with a share of them takes longer.
    void use(nanobind::object times, nanobind::object acquire, nanobind::object release, nanobind::object thread,
             nanobind::object streams, nanobind::object default_stream, nanobind::dict created,
             nanobind::tuple obstacles, long long launch, long long bytes_per_nanosecond,
             long long operations_per_nanosecond, long long multiprocessors);

    // In a forked child: forgets the runtime.
    void forget() { times_ = nullptr; }

    // The current device, its current stream, and the object that EmulatedTimes knows for the stream.
    struct Begun {
        int device = 0;
        Stream stream = 0;
        Owned timeline;
    };

    // False if Python must launch the work, or with a Python error set.
    bool begin(Begun *begun) const;

    // Lets the stream be busy with the work. False with a Python error set if that fails.
    bool end(const Begun &begun, long long bytes, long long operations = 0) const {
        return end(begun.timeline.get(), bytes, operations);
    }
    bool end(PyObject *timeline, long long bytes, long long operations) const;

private:
    PyObject *locals() const;
    bool has_obstacle() const;
    bool find_stream(Begun *begun, PyObject *streams) const;

    nanobind::object times_object_, acquire_, release_, thread_, streams_, default_stream_, created_, obstacles_;
    const EmulatedTimes *times_ = nullptr; // null without a runtime
    nanobind::object locals_name_; // in the dictionary of a thread
    long long launch_ = 0, bytes_per_nanosecond_ = 1, operations_per_nanosecond_ = 1, multiprocessors_ = 1;
};

// Adds the class to the module.
void bind_emulated_work(nanobind::module_ &module);

} // namespace tcuda
