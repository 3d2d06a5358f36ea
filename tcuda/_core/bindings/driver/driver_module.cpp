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
    nb::class_<Driver>(module, "Driver", "A driver table: the calls that the allocator makes of a CUDA driver.");
    nb::class_<PythonCudaDriver, Driver>(module, "CudaDriver", R"(
    The table of ``libcuda.so.1``.

    Raises:
        RuntimeError: The machine has no driver, the driver is too old, or the driver finds no device.)")
        .def(nb::init<>());

    nb::class_<CudaCalls>(module, "CudaCalls", R"(
    Calls of the CUDA runtime that CuPy lacks, made through the driver; each returns a status first.

    CUDA must have been initialised before.

    Raises:
        RuntimeError: The machine has no driver, or the driver is older than that of CUDA 11.4.)")
        .def(nb::init<>())
        .def("device_uuid", device_uuid, nb::arg("device"),
             nb::sig("def device_uuid(self, device: int) -> tuple[int, bytes]"),
             "Return a status, and the 16 bytes of the UUID of ``device`` (``cuDeviceGetUuid_v2``).")
        .def("stream_priority_range", stream_priority_range,
             nb::sig("def stream_priority_range(self) -> tuple[int, int, int]"), R"(
        Return a status, and the least and the greatest priority of the current context's device.

        The thread must have a current context (``cuCtxGetStreamPriorityRange``).)")
        .def("event_record_with_flags", &CudaCalls::event_record_with_flags, nb::arg("event"), nb::arg("stream"),
             nb::arg("flags"), nb::call_guard<nb::gil_scoped_release>(),
             "Record ``event`` on ``stream``, and return a status (``cuEventRecordWithFlags``).")
        .def("stream_create_with_priority", stream_create_with_priority, nb::arg("flags"), nb::arg("priority"),
             nb::sig("def stream_create_with_priority(self, flags: int, priority: int) -> tuple[int, int]"),
             "Return a status, and a new stream of the current context (``cuStreamCreateWithPriority``).")
        .def("stream_flags", stream_flags, nb::arg("stream"),
             nb::sig("def stream_flags(self, stream: int) -> tuple[int, int]"),
             "Return a status, and the flags of ``stream`` (``cuStreamGetFlags``).")
        .def("stream_priority", stream_priority, nb::arg("stream"),
             nb::sig("def stream_priority(self, stream: int) -> tuple[int, int]"),
             "Return a status, and the priority of ``stream`` (``cuStreamGetPriority``).")
        .def("graph_dot_print", &CudaCalls::graph_dot_print, nb::arg("graph"), nb::arg("path"), nb::arg("flags"),
             "Write ``graph`` to a file in the DOT language, and return a status (``cuGraphDebugDotPrint``).");

    nb::class_<GreenContexts>(module, "GreenContexts", R"(
    Calls for green contexts, made through the driver; each returns a status first.

    The primary context of the device must exist.

    Raises:
        RuntimeError: The machine has no driver, or the driver is older than that of CUDA 12.5.)")
        .def(nb::init<>())
        .def("create", create_green_context, nb::arg("device"), nb::arg("multiprocessors"), nb::arg("scope"),
             nb::arg("limit"),
             nb::sig(
                 "def create(self, device: int, multiprocessors: int, scope: int, limit: int) -> tuple[int, int, int]"),
             R"(
        Return a status, a new context, and the number of its multiprocessors (``cuGreenCtxCreate``).

        Args:
            device: The index of the device.
            multiprocessors: The least number of multiprocessors; 0 for all.
            scope: The sharing scope of the work queues; -1 to leave the work queues as they are.
            limit: The most streams of the work queues that work at the same time; 0 for the driver's own limit.)")
        .def("work_queue_concurrency", work_queue_concurrency, nb::arg("device"),
             nb::sig("def work_queue_concurrency(self, device: int) -> tuple[int, int]"),
             "Return a status, and the driver's own limit of concurrent streams (``cuDeviceGetDevResource``).")
        .def("create_stream", create_green_stream, nb::arg("context"), nb::arg("flags"), nb::arg("priority"),
             nb::sig("def create_stream(self, context: int, flags: int, priority: int) -> tuple[int, int]"), R"(
        Return a status, and a new stream of ``context`` (``cuGreenCtxStreamCreate``).

        The stream ends with the context.)")
        .def("destroy", &GreenContexts::destroy, nb::arg("context"), nb::call_guard<nb::gil_scoped_release>(),
             "Wait for the streams of ``context``, destroy them and ``context``, and return a status.");
}

} // namespace tcuda
