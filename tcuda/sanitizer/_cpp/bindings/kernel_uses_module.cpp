#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "bindings/python/containers.hpp"
#include "sanitizer/_cpp/kernel_uses/mangled_name.hpp"
#include "sanitizer/_cpp/kernel_uses/ptx_uses.hpp"

namespace nb = nanobind;

namespace tcuda {
namespace {

using kernel_uses::KernelUse;
using kernel_uses::KernelUses;

constexpr const char *kinds[] = {"none", "read", "write", "both"};

// The bytes of a text need not be UTF-8.
nb::object decoded(const std::string &text) {
    return nb::bytes(text.data(), text.size()).attr("decode")("utf-8", "replace");
}

nb::tuple tuple_of(const KernelUse &use) {
    nb::list parameters = new_list(), pointers = new_list();
    for (const auto &parameter : use.parameters)
        parameters.append(nb::make_tuple(parameter.offset, parameter.size));
    for (const auto &pointer : use.pointers)
        pointers.append(
            nb::make_tuple(pointer.offset, kinds[int(pointer.kind)], pointer.possible, decoded(pointer.label)));
    return nb::make_tuple(parameters, pointers, use.complete);
}

nb::dict dict_of(const KernelUses &uses) {
    nb::dict found = new_dict();
    for (const auto &[name, use] : uses)
        found[decoded(name)] = tuple_of(use);
    return found;
}

nb::dict uses_of_ptx(nb::bytes text) {
    return dict_of(kernel_uses::uses_of_ptx(std::string_view(text.c_str(), text.size())));
}

nb::tuple uses_of_mangled_name(const std::string &name, const std::vector<std::pair<std::size_t, std::size_t>> &given) {
    std::vector<kernel_uses::Parameter> parameters;
    for (const auto &[offset, size] : given)
        parameters.push_back({offset, size});
    return tuple_of(kernel_uses::uses_of_mangled_name(name, parameters));
}

} // namespace

// Adds the functions to the module that read what kernels do with memory.
void bind_kernel_uses(nb::module_ &module) {
    module.def("uses_of_ptx", &uses_of_ptx, nb::arg("text"));
    module.def("uses_of_mangled_name", &uses_of_mangled_name, nb::arg("name"), nb::arg("parameters"));
}

} // namespace tcuda
