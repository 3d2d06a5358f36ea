// Python face of the core; tcuda/_core.pyi is its typed description.
#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/vector.h>

#include <atomic>

#include "bindings/block_allocator.hpp"
#include "bindings/scopes.hpp"
#include "graphs/cuda_graphs.hpp"
#include "driver/host_memory.hpp"
#include "bindings/ledger_module.hpp"
#include "bindings/mended.hpp"
#include "bindings/philox_module.hpp"
#include "bindings/translated.hpp"

namespace nb = nanobind;
using tcuda::CudaGraphs;
using tcuda::HostMemory;

namespace {

// Launches a graph on the stream that CuPy launches on in this thread.
class PythonLauncher {
public:
    PythonLauncher(std::uintptr_t exec, nb::handle current_stream)
        : launcher_(exec), current_stream_(reinterpret_cast<CurrentStream *>(
                               PyCapsule_GetPointer(current_stream.ptr(), PyCapsule_GetName(current_stream.ptr())))) {
        if (current_stream_ == nullptr)
            nb::raise_python_error();
    }

    int launch() {
        launched_.store(true, std::memory_order_relaxed);
        const auto stream = static_cast<std::uintptr_t>(current_stream_());
        const nb::gil_scoped_release release; // a launch may wait for room in the queue of the stream
        return launcher_.launch(stream);
    }
    bool launched() const { return launched_.load(std::memory_order_relaxed); }

private:
    using CurrentStream = std::intptr_t();

    const tcuda::GraphLauncher launcher_;
    CurrentStream *const current_stream_;
    std::atomic<bool> launched_{false};
};

} // namespace

NB_MODULE(_core, module) {
    // Devices and arrays may live as long as the process: an object that is alive at its end is no leak.
    nb::set_leak_warnings(false);
    module.attr("version") = TCUDA_VERSION;

    nb::class_<HostMemory>(module, "HostMemory")
        .def(nb::init<std::size_t>(), nb::arg("limit"))
        .def("allocate", &HostMemory::allocate, nb::arg("size"), nb::call_guard<nb::gil_scoped_release>())
        .def("release", &HostMemory::release, nb::arg("address"), nb::call_guard<nb::gil_scoped_release>())
        .def(
            "block_at",
            [](const HostMemory &memory, std::uintptr_t address) -> std::optional<std::pair<std::uintptr_t, std::size_t>> {
                const auto block = memory.block_at(address);
                if (!block)
                    return std::nullopt;
                return std::pair(block->address, block->size);
            },
            nb::arg("address"))
        .def("is_unmapped", &HostMemory::is_unmapped, nb::arg("address"))
        .def_prop_ro("limit", &HostMemory::limit)
        .def_prop_ro("used", &HostMemory::used)
        .def_prop_ro("live", &HostMemory::live);

    // Each returns a status, and what it was called for.
    nb::class_<CudaGraphs>(module, "CudaGraphs")
        .def(nb::init<>())
        .def(
            "capture_info",
            [](const CudaGraphs &graphs, std::uintptr_t stream) {
                CudaGraphs::CaptureInfo info;
                const int status = graphs.capture_info(stream, &info);
                return nb::make_tuple(status, info.status, info.id);
            },
            nb::arg("stream"))
        .def(
            "instantiate",
            [](const CudaGraphs &graphs, std::uintptr_t graph, std::uint64_t flags) {
                std::uintptr_t exec = 0;
                const int status = graphs.instantiate(graph, flags, &exec);
                return std::pair(status, exec);
            },
            nb::arg("graph"), nb::arg("flags"), nb::call_guard<nb::gil_scoped_release>())
        .def("destroy_exec", &CudaGraphs::destroy_exec, nb::arg("exec"), nb::call_guard<nb::gil_scoped_release>())
        .def(
            "contents",
            [](const CudaGraphs &graphs, std::uintptr_t graph) {
                std::size_t nodes = 0;
                std::vector<std::uintptr_t> addresses;
                const int status = graphs.contents(graph, &nodes, &addresses);
                return nb::make_tuple(status, nodes, addresses);
            },
            nb::arg("graph"));

    nb::class_<PythonLauncher>(module, "GraphLauncher")
        .def(nb::init<std::uintptr_t, nb::handle>(), nb::arg("exec"), nb::arg("current_stream"))
        .def("launch", &PythonLauncher::launch)
        .def_prop_ro("launched", &PythonLauncher::launched);

    tcuda::bind_ledger(module);
    tcuda::bind_philox(module);

    const nb::object block_allocator_type = nb::steal(tcuda::make_block_allocator_type());
    if (!block_allocator_type.is_valid())
        nb::raise_python_error();
    module.def(
        "block_allocator",
        [block_allocator_type](nb::object allocate, nb::object memory, nb::object size) {
            nb::object made = nb::steal(
                tcuda::make_block_allocator(block_allocator_type.ptr(), allocate.ptr(), memory.ptr(), size.ptr()));
            if (!made.is_valid())
                nb::raise_python_error();
            return made;
        },
        nb::arg("allocate"), nb::arg("memory"), nb::arg("size"));

    const nb::object translated_type = nb::steal(tcuda::make_translated_type());
    if (!translated_type.is_valid())
        nb::raise_python_error();
    module.def(
        "translated",
        [translated_type](nb::object function, nb::object failure, nb::object raise_instead) {
            nb::object made = nb::steal(
                tcuda::make_translated(translated_type.ptr(), function.ptr(), failure.ptr(), raise_instead.ptr()));
            if (!made.is_valid())
                nb::raise_python_error();
            return made;
        },
        nb::arg("function"), nb::arg("failure"), nb::arg("raise_instead"));

    const nb::object mended_type = nb::steal(tcuda::make_mended_type());
    if (!mended_type.is_valid())
        nb::raise_python_error();
    module.def(
        "mended",
        [mended_type](nb::object function, nb::object mend) {
            nb::object made = nb::steal(tcuda::make_mended(mended_type.ptr(), function.ptr(), mend.ptr()));
            if (!made.is_valid())
                nb::raise_python_error();
            return made;
        },
        nb::arg("function"), nb::arg("mend"));

    if (!tcuda::add_scopes(module.ptr()))
        nb::raise_python_error();
    module.def("find_calls_by", [](nb::object function) { tcuda::find_calls_by(function.ptr()); }, nb::arg("function"));
    module.def("forget_scopes", tcuda::forget_scopes);
}
