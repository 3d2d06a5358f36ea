#include <nanobind/nanobind.h>

#include <string_view>

#include "bindings/python/containers.hpp"
#include "sanitizer/_cpp/bindings/python_kernel_use.hpp"
#include "sanitizer/_cpp/kernel_uses/ptx_uses.hpp"

namespace nb = nanobind;

namespace tcuda {
namespace {

using kernel_uses::KernelUses;

nb::dict dict_of(const KernelUses &uses) {
    nb::dict found = new_dict();
    for (const auto &[name, use] : uses)
        found[decoded(name)] = tuple_of(use);
    return found;
}

nb::dict uses_of_ptx(nb::bytes text) {
    return dict_of(kernel_uses::uses_of_ptx(std::string_view(text.c_str(), text.size())));
}

} // namespace

// Adds the functions to the module that read what kernels do with memory.
void bind_kernel_uses(nb::module_ &module) {
    module.def("uses_of_ptx", &uses_of_ptx, nb::arg("text"),
               nb::sig("def uses_of_ptx(text: bytes) -> dict[str, _KernelUse]"), R"(
    Return what the kernels of a PTX module do with the memory that their parameters point to.

    Returns:
        For each name of a kernel: ``(offset, size)`` of each parameter; ``(offset, kind, possible, label)`` of each
        pointer; and whether the kernel uses no other memory.)");
}

} // namespace tcuda
