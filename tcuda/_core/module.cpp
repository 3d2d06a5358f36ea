// Python face of the core; tcuda/_core.pyi is its typed description.
#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>

#include "host_memory.hpp"
#include "ledger_module.hpp"
#include "philox_module.hpp"
#include "translated.hpp"

namespace nb = nanobind;
using tcuda::HostMemory;

NB_MODULE(_core, module) {
    // Devices and arrays may live as long as the process: an object that is alive at its end is no leak.
    nb::set_leak_warnings(false);

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

    tcuda::bind_ledger(module);
    tcuda::bind_philox(module);

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
}
