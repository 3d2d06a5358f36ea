#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <cstring>

#include "bindings/driver/python_cuda_driver.hpp"
#include "bindings/emulated/python_streams.hpp"
#include "bindings/python/containers.hpp"
#include "driver/cuda_calls.hpp"
#include "driver/faulty_driver.hpp"
#include "driver/green_contexts.hpp"
#include "emulated/memory/emulated_memory.hpp"

namespace nb = nanobind;

namespace tcuda {
namespace {

std::optional<std::pair<std::uintptr_t, std::size_t>> block_at(const EmulatedMemory &memory, std::uintptr_t address) {
    const auto block = memory.block_at(address);
    if (!block)
        return std::nullopt;
    return std::pair(block->address, block->size);
}

nb::list bounds(const EmulatedMemory &memory) {
    nb::list found = new_list();
    for (const EmulatedMemory::Block &range : memory.bounds())
        found.append(nb::make_tuple(range.address, range.address + range.size));
    return found;
}

std::optional<std::pair<std::size_t, std::size_t>> place_of(const EmulatedMemory &memory, std::uintptr_t address) {
    const auto place = memory.place_of(address);
    if (!place)
        return std::nullopt;
    return std::pair(place->offset, place->size);
}

void call_meanwhile(FaultyDriver &driver, nb::object function) {
    driver.meanwhile([function] {
        const nb::gil_scoped_acquire lock;
        try {
            function();
        } catch (nb::python_error &error) {
            error.discard_as_unraisable(function);
        }
    });
}

void copy_rows(Address target, std::size_t target_pitch, Address source, std::size_t source_pitch, std::size_t width,
               std::size_t rows) {
    for (std::size_t row = 0; row < rows; ++row)
        std::memmove(reinterpret_cast<void *>(target + row * target_pitch),
                     reinterpret_cast<const void *>(source + row * source_pitch), width);
}

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

// Adds the driver tables, the memory of emulated devices, and the calls of the driver that CuPy lacks to the module.
void bind_driver(nb::module_ &module) {
    nb::class_<EmulatedMemory>(module, "EmulatedMemory")
        .def(nb::init<std::size_t>(), nb::arg("limit"))
        .def("allocate", &EmulatedMemory::allocate, nb::arg("size"), nb::arg("exportable") = true,
             nb::call_guard<nb::gil_scoped_release>())
        .def("release", &EmulatedMemory::release, nb::arg("address"), nb::call_guard<nb::gil_scoped_release>())
        .def("block_at", block_at, nb::arg("address"))
        .def("bounds", bounds)
        .def("is_unmapped", &EmulatedMemory::is_unmapped, nb::arg("address"))
        .def("descriptor", &EmulatedMemory::descriptor)
        .def("place_of", place_of, nb::arg("address"))
        .def(
            "import_block",
            [](EmulatedMemory &memory, int descriptor, std::size_t offset, std::size_t size) {
                return memory.import_block(descriptor, {offset, size});
            },
            nb::arg("descriptor"), nb::arg("offset"), nb::arg("size"))
        .def("close_import", &EmulatedMemory::close_import, nb::arg("address"))
        .def("keep_freed", &EmulatedMemory::keep_freed)
        .def("give_back", &EmulatedMemory::give_back, nb::call_guard<nb::gil_scoped_release>())
        .def_prop_ro("kept", &EmulatedMemory::kept)
        .def_prop_ro("limit", &EmulatedMemory::limit)
        .def_prop_ro("used", &EmulatedMemory::used)
        .def_prop_ro("live", &EmulatedMemory::live);

    module.def("copy_rows", copy_rows, nb::arg("target"), nb::arg("target_pitch"), nb::arg("source"),
               nb::arg("source_pitch"), nb::arg("width"), nb::arg("rows"), nb::call_guard<nb::gil_scoped_release>());

    nb::class_<Driver>(module, "Driver");
    nb::class_<PythonCudaDriver, Driver>(module, "CudaDriver").def(nb::init<>());
    nb::class_<PythonStreams, Driver>(module, "EmulatedDriver")
        .def(nb::init<std::vector<EmulatedMemory *>, nb::object>(), nb::arg("memories"), nb::arg("streams"),
             nb::keep_alive<1, 2>());
    nb::class_<FaultyDriver, Driver>(module, "FaultyDriver")
        .def(nb::init<Driver &>(), nb::arg("driver"), nb::keep_alive<1, 2>())
        .def("fail", &FaultyDriver::fail, nb::arg("entry"), nb::arg("calls"), nb::arg("status"))
        .def_prop_ro("failed", &FaultyDriver::failed)
        .def("meanwhile", call_meanwhile, nb::arg("function"))
        .def("forget_host_uses", &FaultyDriver::forget_host_uses)
        .def("use_host_node", &FaultyDriver::use_host_node, nb::arg("node"))
        .def("successes", &FaultyDriver::successes, nb::arg("entry"));

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
