// The functions by which Python describes kernels, and the readers of launches and of graphs for tests.
#include <nanobind/stl/map.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "bindings/python/containers.hpp"
#include "sanitizer/_cpp/bindings/python_launch_reader.hpp"
#include "sanitizer/_cpp/kernel_uses/kernel_use.hpp"
#include "sanitizer/_cpp/watch/kernel_table.hpp"

namespace nb = nanobind;

namespace tcuda {
namespace {

using kernel_uses::KernelUse;
using watch::KernelTable;
using watch::Module;

using Parameters = std::vector<std::pair<std::size_t, std::size_t>>;                               // offset, size
using Pointers = std::vector<std::tuple<std::size_t, int, bool, int, std::size_t, std::string>>; // as in KernelUse

KernelUse use_of(const Parameters &parameters, const Pointers &pointers, bool complete) {
    KernelUse use;
    for (const auto &[offset, size] : parameters)
        use.parameters.push_back({offset, size});
    for (const auto &[offset, kind, possible, dimensions, itemsize, label] : pointers) {
        if (kind < 0 || kind > 3)
            throw nb::value_error("the kind of a pointer is 0 (none), 1 (read), 2 (write) or 3 (both)");
        use.pointers.push_back({offset, static_cast<kernel_uses::Kind>(kind), possible, dimensions, itemsize, label});
    }
    use.complete = complete;
    return use;
}

void describe(KernelTable &table, Module module, std::string kernel, const Parameters &parameters,
              const Pointers &pointers, bool complete) {
    table.describe(module, std::move(kernel), use_of(parameters, pointers, complete));
}

std::string text_of(nb::handle text) {
    if (nb::isinstance<nb::bytes>(text)) {
        const auto bytes = nb::borrow<nb::bytes>(text);
        return std::string(bytes.c_str(), bytes.size());
    }
    return nb::cast<std::string>(text);
}

// An analysis that is a function of Python, for tests: {kernel: (parameters, pointers, complete)} of the text.
KernelTable::Analysis analysis_of(nb::object function) {
    if (function.is_none())
        return {};
    return [function](std::string_view text) {
        const nb::gil_scoped_acquire lock;
        kernel_uses::KernelUses uses;
        const auto told = nb::cast<std::map<std::string, std::tuple<Parameters, Pointers, bool>>>(
            function(nb::bytes(text.data(), text.size())));
        for (const auto &[kernel, use] : told)
            uses.emplace(kernel, use_of(std::get<0>(use), std::get<1>(use), std::get<2>(use)));
        return uses;
    };
}

void make_table(KernelTable *place, nb::object of_ptx) { new (place) KernelTable(analysis_of(std::move(of_ptx))); }

nb::dict sizes(KernelTable &table) {
    const KernelTable::Sizes sizes = table.sizes();
    nb::dict made = new_dict();
    made["modules"] = sizes.modules;
    made["functions"] = sizes.functions;
    return made;
}

void bind_table(nb::module_ &module) {
    nb::class_<KernelTable>(module, "KernelTable")
        .def("__init__", make_table, nb::arg("of_ptx") = nb::none())
        .def("describe_kernel", describe, nb::arg("module"), nb::arg("name"), nb::arg("parameters"),
             nb::arg("pointers"), nb::arg("complete"))
        .def(
            "add_ptx", [](KernelTable &table, Module of, nb::handle text) { table.add_ptx(of, text_of(text)); },
            nb::arg("module"), nb::arg("text"))
        .def("forget_module", &KernelTable::forget, nb::arg("module"))
        .def("sizes", sizes);
    module.def("kernel_table", &watch::kernel_table, nb::rv_policy::reference);
    module.def(
        "describe_kernel",
        [](Module of, std::string kernel, const Parameters &parameters, const Pointers &pointers, bool complete) {
            describe(watch::kernel_table(), of, std::move(kernel), parameters, pointers, complete);
        },
        nb::arg("module"), nb::arg("name"), nb::arg("parameters"), nb::arg("pointers"), nb::arg("complete"));
    module.def(
        "add_ptx", [](Module of, nb::handle text) { watch::kernel_table().add_ptx(of, text_of(text)); },
        nb::arg("module"), nb::arg("text"));
    module.def("forget_module", [](Module of) { watch::kernel_table().forget(of); }, nb::arg("module"));
}

} // namespace

void bind_kernel_table(nb::module_ &module) {
    bind_table(module);
    bind_launch_reader(module);
}

} // namespace tcuda
