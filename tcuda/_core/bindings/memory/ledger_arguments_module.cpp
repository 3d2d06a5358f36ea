#include <nanobind/stl/array.h>
#include <nanobind/stl/shared_ptr.h>

#include "bindings/memory/owned_library_source.hpp"
#include "bindings/memory/python_source.hpp"
#include "memory/ledger/ledger.hpp"

namespace nb = nanobind;

namespace tcuda {

// Adds the classes of the arguments of a Ledger's methods to the module: settings, sources of memory, trackers, and the
// choice of the stacks that the history notes.
void bind_ledger_arguments(nb::module_ &module) {
    nb::class_<Settings>(module, "Settings", "The options of the caching allocator.")
        .def(nb::init<>())
        .def_rw("max_split_size", &Settings::max_split_size)
        .def_rw("max_non_split_rounding", &Settings::max_non_split_rounding)
        .def_rw("garbage_collection_threshold", &Settings::garbage_collection_threshold)
        .def_rw("expandable_segments", &Settings::expandable_segments)
        .def_rw("trim_always", &Settings::trim_always)
        .def_rw("rejects_beyond_limit", &Settings::rejects_beyond_limit)
        .def_rw("roundup_power2_divisions", &Settings::roundup_power2_divisions);

    nb::class_<ExternalSource>(module, "Source", "A source of memory other than the caching allocator.");
    nb::class_<PythonSource, ExternalSource>(module, "PythonSource", R"(
    A source that is a Python object.

    Args:
        pool: An object with two methods. ``allocate(size, device, stream)`` returns an object that keeps the memory,
            with the address as ``ptr``. ``empty_cache(device)`` gives back the memory that is kept for later.
        reports_segments: Whether the pool takes its segments from :meth:`Ledger.allocate_segment`.
        unit: The number of bytes of which every size is made a multiple.)")
        .def(
            "__init__",
            [](PythonSource *made, nb::object pool, bool reports_segments, std::size_t unit) {
                const Reserve reserve = reports_segments ? Reserve::reported : Reserve::unknown;
                new (made) PythonSource(std::move(pool), reserve, unit);
            },
            nb::arg("pool"), nb::arg("reports_segments"), nb::arg("unit"));
    nb::class_<OwnedLibrarySource, ExternalSource>(
        module, "LibrarySource",
        "Two functions with the signatures of torch's pluggable allocator; ``owner`` keeps their library loaded.")
        .def(nb::init<std::uintptr_t, std::uintptr_t, nb::object>(), nb::arg("allocate"), nb::arg("free"),
             nb::arg("owner"));

    nb::class_<Tracker>(module, "Tracker", "Measures allocations while it is attached to the ledger of a device.")
        .def(nb::init<bool>(), nb::arg("of_thread"));

    nb::enum_<Stacks>(module, "Stacks", "The choice of the stacks that the history notes.", nb::is_arithmetic())
        .value("NONE", Stacks::none)
        .value("LIVE", Stacks::live)
        .value("ALLOCATIONS", Stacks::allocations)
        .value("ALL", Stacks::all);
}

} // namespace tcuda
