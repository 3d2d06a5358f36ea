// The functions by which Python describes kernels.
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <string>
#include <utility>

#include "sanitizer/_cpp/bindings/python_kernel_use.hpp"
#include "sanitizer/_cpp/watch/kernel_table.hpp"

namespace nb = nanobind;

namespace tcuda {
namespace {

using watch::Module;

std::string text_of(nb::handle text) {
    if (nb::isinstance<nb::bytes>(text)) {
        const auto bytes = nb::borrow<nb::bytes>(text);
        return std::string(bytes.c_str(), bytes.size());
    }
    return nb::cast<std::string>(text);
}

} // namespace

void bind_kernel_table(nb::module_ &module) {
    module.def(
        "describe_kernel",
        [](Module of, std::string kernel, const KernelParameterTuples &parameters, const KernelPointerTuples &pointers,
           bool complete) {
            watch::kernel_table().describe(of, std::move(kernel), use_of(parameters, pointers, complete));
        },
        nb::arg("module"), nb::arg("name"), nb::arg("parameters"), nb::arg("pointers"), nb::arg("complete"));
    module.def(
        "add_ptx", [](Module of, nb::handle text) { watch::kernel_table().add_ptx(of, text_of(text)); },
        nb::arg("module"), nb::arg("text"));
    module.def("forget_module", [](Module of) { watch::kernel_table().forget(of); }, nb::arg("module"));
}

} // namespace tcuda
