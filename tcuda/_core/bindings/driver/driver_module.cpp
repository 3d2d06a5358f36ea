#include <nanobind/stl/string.h>

#include "bindings/driver/python_cuda_driver.hpp"
#include "bindings/python/containers.hpp"
#include "driver/cuda_calls.hpp"
#include "driver/green_contexts.hpp"

namespace nb = nanobind;

namespace tcuda {
namespace {

nb::tuple device_uuid(const CudaCalls &calls, int device) {
    libcuda::Uuid uuid{};
    const int status = calls.device_uuid(device, &uuid);
    return nb::make_tuple(status, nb::bytes(uuid.bytes, sizeof uuid.bytes));
}

nb::tuple stream_priority_range(const CudaCalls &calls) {
    int least = 0, greatest = 0;
    const int status = calls.stream_priority_range(&least, &greatest);
    return nb::make_tuple(status, least, greatest);
}

nb::tuple stream_create_with_priority(const CudaCalls &calls, unsigned flags, int priority) {
    libcuda::Stream stream = 0;
    const int status = calls.stream_create_with_priority(flags, priority, &stream);
    return nb::make_tuple(status, stream);
}

nb::tuple stream_flags(const CudaCalls &calls, libcuda::Stream stream) {
    unsigned flags = 0;
    const int status = calls.stream_flags(stream, &flags);
    return nb::make_tuple(status, flags);
}

nb::tuple stream_priority(const CudaCalls &calls, libcuda::Stream stream) {
    int priority = 0;
    const int status = calls.stream_priority(stream, &priority);
    return nb::make_tuple(status, priority);
}

// The driver may wait for a host function in a stream, which may need Python's lock.
template <typename Function> int released(const Function &function) {
    const nb::gil_scoped_release release;
    return function();
}

nb::tuple create_green_context(const GreenContexts &contexts, int device, unsigned multiprocessors, int scope,
                               unsigned limit) {
    libcuda::GreenContext made = 0;
    const int status = released([&] { return contexts.create(device, &multiprocessors, scope, limit, &made); });
    return nb::make_tuple(status, made, multiprocessors);
}

nb::tuple work_queue_concurrency(const GreenContexts &contexts, int device) {
    unsigned limit = 0;
    const int status = released([&] { return contexts.work_queue_concurrency(device, &limit); });
    return nb::make_tuple(status, limit);
}

nb::tuple create_green_stream(GreenContexts &contexts, libcuda::GreenContext context, unsigned flags, int priority) {
    libcuda::Stream made = 0;
    const int status = released([&] { return contexts.create_stream(context, flags, priority, &made); });
    return nb::make_tuple(status, made);
}

} // namespace

// Adds the driver tables and the calls of the driver that CuPy lacks to the module.
void bind_driver(nb::module_ &module) {
    nb::class_<Driver>(module, "Driver");
    nb::class_<PythonCudaDriver, Driver>(module, "CudaDriver").def(nb::init<>());

    nb::class_<CudaCalls>(module, "CudaCalls")
        .def(nb::init<>())
        .def("device_uuid", device_uuid, nb::arg("device"))
        .def("stream_priority_range", stream_priority_range)
        .def("event_record_with_flags", &CudaCalls::event_record_with_flags, nb::arg("event"), nb::arg("stream"),
             nb::arg("flags"), nb::call_guard<nb::gil_scoped_release>())
        .def("stream_create_with_priority", stream_create_with_priority, nb::arg("flags"), nb::arg("priority"))
        .def("stream_flags", stream_flags, nb::arg("stream"))
        .def("stream_priority", stream_priority, nb::arg("stream"))
        .def("graph_dot_print", &CudaCalls::graph_dot_print, nb::arg("graph"), nb::arg("path"), nb::arg("flags"));

    nb::class_<GreenContexts>(module, "GreenContexts")
        .def(nb::init<>())
        .def("create", create_green_context, nb::arg("device"), nb::arg("multiprocessors"), nb::arg("scope"),
             nb::arg("limit"))
        .def("work_queue_concurrency", work_queue_concurrency, nb::arg("device"))
        .def("create_stream", create_green_stream, nb::arg("context"), nb::arg("flags"), nb::arg("priority"))
        .def("destroy", &GreenContexts::destroy, nb::arg("context"), nb::call_guard<nb::gil_scoped_release>());
}

} // namespace tcuda
