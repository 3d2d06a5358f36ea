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
        nb::arg("module"), nb::arg("name"), nb::arg("parameters"), nb::arg("pointers"), nb::arg("complete"),
        nb::sig("def describe_kernel(module: int, name: str, parameters: _Parameters, pointers: _Pointers, complete: "
                "bool) -> None"),
        R"(
    Tell what a kernel does with memory, for race detectors.

    Args:
        module: The handle of the module.
        name: The mangled name of the kernel.
        parameters: The offset and the size of each parameter, in bytes.
        pointers: For each pointer its offset in the parameter block, the kind (0 for a pointer that is not used, 1 for
            a read, 2 for a write, 3 for both), whether the kernel may do less, the number of dimensions, the size of
            an item, and the name of the parameter. The number of dimensions is -1 for a pointer without a known extent.
            Otherwise the pointer begins a ``CArray`` of CuPy.
        complete: Whether the kernel uses no memory but that of ``pointers``.

    Raises:
        ValueError: The kind of a pointer is no such number.)");
    module.def(
        "add_ptx", [](Module of, nb::handle text) { watch::kernel_table().add_ptx(of, text_of(text)); },
        nb::arg("module"), nb::arg("text"), nb::sig("def add_ptx(module: int, text: bytes | str) -> None"),
        "Tell the PTX of a module. The text is looked at when a kernel without a description is first launched.");
    module.def(
        "forget_module", [](Module of) { watch::kernel_table().forget(of); }, nb::arg("module"),
        "Forget the descriptions and the PTX of a module.");
}

} // namespace tcuda
