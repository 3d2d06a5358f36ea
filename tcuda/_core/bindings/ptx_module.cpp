#include "bindings/ptx_module.hpp"

#include <string>
#include <string_view>

#include "kernel_uses/ptx_uses.hpp"

namespace nb = nanobind;

namespace tcuda {
namespace {

using kernel_uses::KernelUse;
using kernel_uses::Kind;

const char *name_of(Kind kind) {
    switch (kind) {
    case Kind::none:
        break;
    case Kind::read:
        return "read";
    case Kind::write:
        return "write";
    case Kind::both:
        return "both";
    }
    return "none";
}

// The bytes of a text need not be UTF-8.
nb::object decoded(const std::string &text) {
    return nb::bytes(text.data(), text.size()).attr("decode")("utf-8", "replace");
}

nb::tuple tuple_of(const KernelUse &use) {
    nb::list parameters, pointers;
    for (const auto &parameter : use.parameters)
        parameters.append(nb::make_tuple(parameter.offset, parameter.size));
    for (const auto &pointer : use.pointers)
        pointers.append(nb::make_tuple(pointer.offset, name_of(pointer.kind), pointer.possible,
                                       decoded(pointer.label)));
    return nb::make_tuple(parameters, pointers, use.complete);
}

nb::dict uses_of_ptx(nb::bytes text) {
    nb::dict uses;
    for (const auto &[name, use] : kernel_uses::uses_of_ptx(std::string_view(text.c_str(), text.size())))
        uses[decoded(name)] = tuple_of(use);
    return uses;
}

} // namespace

void bind_ptx(nb::module_ &module) { module.def("uses_of_ptx", &uses_of_ptx, nb::arg("text")); }

} // namespace tcuda
