#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/vector.h>

#include <cstring>

#include "bindings/python/containers.hpp"
#include "emulation/_cpp/bindings/python_streams.hpp"
#include "emulation/_cpp/memory/emulated_memory.hpp"

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

void copy_rows(Address target, std::size_t target_pitch, Address source, std::size_t source_pitch, std::size_t width,
               std::size_t rows) {
    for (std::size_t row = 0; row < rows; ++row)
        std::memmove(reinterpret_cast<void *>(target + row * target_pitch),
                     reinterpret_cast<const void *>(source + row * source_pitch), width);
}

} // namespace

// Adds the memory of emulated devices, and their driver table. The class Driver is in the module already.
void bind_emulated_memory(nb::module_ &module) {
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

    nb::class_<PythonStreams, Driver>(module, "EmulatedDriver")
        .def(nb::init<std::vector<EmulatedMemory *>, nb::object>(), nb::arg("memories"), nb::arg("streams"),
             nb::keep_alive<1, 2>());

    module.def("copy_rows", copy_rows, nb::arg("target"), nb::arg("target_pitch"), nb::arg("source"),
               nb::arg("source_pitch"), nb::arg("width"), nb::arg("rows"), nb::call_guard<nb::gil_scoped_release>());
}

} // namespace tcuda
