#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/vector.h>

#include <cstring>
#include <iterator>
#include <set>

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

// Addresses in their order. Python's lock guards them, and no function calls Python.
class AddressSet {
public:
    void add(std::uintptr_t address) { addresses_.insert(address); }
    void discard(std::uintptr_t address) { addresses_.erase(address); }

    std::optional<std::uintptr_t> at_or_below(std::uintptr_t address) const {
        const auto above = addresses_.upper_bound(address);
        return above == addresses_.begin() ? std::nullopt : std::optional(*std::prev(above));
    }

    std::optional<std::uintptr_t> above(std::uintptr_t address) const {
        const auto found = addresses_.upper_bound(address);
        return found == addresses_.end() ? std::nullopt : std::optional(*found);
    }

private:
    std::set<std::uintptr_t> addresses_;
};

void copy_rows(Address target, std::size_t target_pitch, Address source, std::size_t source_pitch, std::size_t width,
               std::size_t rows) {
    for (std::size_t row = 0; row < rows; ++row)
        std::memmove(reinterpret_cast<void *>(target + row * target_pitch),
                     reinterpret_cast<const void *>(source + row * source_pitch), width);
}

} // namespace

// Adds the memory of emulated devices, and their driver table. The class Driver is in the module already.
void bind_emulated_memory(nb::module_ &module) {
    nb::class_<AddressSet>(module, "AddressSet", "Addresses in their order.")
        .def(nb::init<>())
        .def("add", &AddressSet::add, nb::arg("address"), "Add an address, unless the set has the address.")
        .def("discard", &AddressSet::discard, nb::arg("address"), "Remove an address, if the set has the address.")
        .def("at_or_below", &AddressSet::at_or_below, nb::arg("address"),
             "Return the largest address of the set that is not above ``address``; None if there is none.")
        .def("above", &AddressSet::above, nb::arg("address"),
             "Return the smallest address of the set that is above ``address``; None if there is none.");
    nb::class_<EmulatedMemory>(module, "EmulatedMemory", R"(
    The memory of an emulated device: up to ``limit`` bytes of the host, in blocks like those of ``cudaMalloc``.)")
        .def(nb::init<std::size_t>(), nb::arg("limit"))
        .def("allocate", &EmulatedMemory::allocate, nb::arg("size"), nb::arg("exportable") = true,
             nb::call_guard<nb::gil_scoped_release>(), R"(
        Return the address of a new block of ``size`` bytes, or 0 if the limit or the host refuses the block.

        Other processes can import the block if it is ``exportable``.)")
        .def("release", &EmulatedMemory::release, nb::arg("address"), nb::call_guard<nb::gil_scoped_release>(),
             "Free the block that begins at ``address``; return False, with nothing changed, if no block begins there.")
        .def("block_at", block_at, nb::arg("address"),
             "Return ``(address, size)`` of the live block or the mapped range that contains ``address``.")
        .def("bounds", bounds, nb::sig("def bounds(self) -> list[tuple[int, int]]"),
             "Return the start and the end of a few ranges, in which the memory lies that :meth:`block_at` knows.")
        .def("is_unmapped", &EmulatedMemory::is_unmapped, nb::arg("address"),
             "Return whether ``address`` is reserved and not mapped.")
        .def_prop_ro(
            "unmaps", [](const EmulatedMemory &) { return EmulatedMemory::unmaps(); },
            "The number of times that memory of any device was unmapped; until it grows, mapped addresses stay mapped.")
        .def("descriptor", &EmulatedMemory::descriptor,
             "Return the descriptor of the file in which the memory lies, or -1 if the memory is private.")
        .def("place_of", place_of, nb::arg("address"),
             "Return the offset in the file, and the size, of the exportable block that contains ``address``.")
        .def(
            "import_block",
            [](EmulatedMemory &memory, int descriptor, std::size_t offset, std::size_t size) {
                return memory.import_block(descriptor, {offset, size});
            },
            nb::arg("descriptor"), nb::arg("offset"), nb::arg("size"), R"(
        Return the address of a block that lies in another process's file, or 0 after a failure.

        The block does not count as used.)")
        .def("close_import", &EmulatedMemory::close_import, nb::arg("address"),
             "Unmap the imported block that begins at ``address``; return False if no such block begins there.")
        .def("keep_freed", &EmulatedMemory::keep_freed, R"(
        Keep memory accessible that is freed or unmapped from now on, for work that still has to be done.

        The memory counts as free. Its addresses are not used again before :meth:`give_back`.)")
        .def("give_back", &EmulatedMemory::give_back, nb::call_guard<nb::gil_scoped_release>(),
             "Give the kept memory back to the system.")
        .def_prop_ro("kept", &EmulatedMemory::kept, "Return the bytes that :meth:`keep_freed` keeps.")
        .def_prop_ro("limit", &EmulatedMemory::limit)
        .def_prop_ro("used", &EmulatedMemory::used,
                     "Return how many bytes are in use, each block rounded up to a multiple of 512.")
        .def_prop_ro("live", &EmulatedMemory::live,
                     "Return the number of blocks, imported blocks, mappings and reservations.");

    nb::class_<PythonStreams, Driver>(module, "EmulatedDriver", R"(
    The table of emulated devices.

    Args:
        memories: The memory of each device.
        streams: An object with the stream and event entries of the table as methods.)")
        .def(nb::init<std::vector<EmulatedMemory *>, nb::object>(), nb::arg("memories"), nb::arg("streams"),
             nb::keep_alive<1, 2>());

    module.def("copy_rows", copy_rows, nb::arg("target"), nb::arg("target_pitch"), nb::arg("source"),
               nb::arg("source_pitch"), nb::arg("width"), nb::arg("rows"), nb::call_guard<nb::gil_scoped_release>(),
               "Copy ``rows`` rows of ``width`` bytes of the host; a pitch is the bytes from one row to the next.");
}

} // namespace tcuda
