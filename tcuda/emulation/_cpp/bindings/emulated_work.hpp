// Work of emulated devices that is done in the call that launches the work.
#pragma once

#include <nanobind/nanobind.h>

#include <cstdint>

#include "bindings/python/owned.hpp"
#include "driver/driver.hpp"
#include "emulation/_cpp/bindings/emulated_thread.hpp"
#include "emulation/_cpp/bindings/emulated_times.hpp"

namespace tcuda {

// Begins and ends the kernels that a caller runs itself. Without a runtime, and while there is an obstacle, no work is
// done at once.
class EmulatedWork {
public:
    // Uses a runtime. `times` moves its clock. `thread` has the current device and the current streams. `created` has
    // the streams of the runtime by handle, except the default streams. Each of `obstacles` is a list that is empty if
    // work is done at once. `kernel` gives the time of a kernel.
    void use(nanobind::object times, nanobind::object thread, nanobind::dict created, nanobind::tuple obstacles,
             const KernelTime &kernel);

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
        return end(EmulatedTimeline::of(begun.timeline.get()), bytes, operations);
    }
    bool end(EmulatedTimeline &timeline, long long bytes, long long operations) const;

private:
    bool has_obstacle() const;
    bool find_stream(Begun *begun, PyObject *stream) const;

    nanobind::object times_object_, thread_object_, created_, obstacles_;
    EmulatedTimes *times_ = nullptr; // null without a runtime
    const EmulatedThread *thread_ = nullptr;
    KernelTime kernel_;
};

// Adds the class to the module.
void bind_emulated_work(nanobind::module_ &module);

} // namespace tcuda
