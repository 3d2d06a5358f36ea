#include "sanitizer/_cpp/bindings/python_kernel_use.hpp"

#include "bindings/python/containers.hpp"

namespace nb = nanobind;

namespace tcuda {

using kernel_uses::KernelUse;

namespace {

constexpr const char *kinds[] = {"none", "read", "write", "both"};

} // namespace

nb::object decoded(const std::string &text) {
    return nb::bytes(text.data(), text.size()).attr("decode")("utf-8", "replace");
}

KernelUse use_of(const KernelParameterTuples &parameters, const KernelPointerTuples &pointers, bool complete) {
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

nb::tuple tuple_of(const KernelUse &use) {
    nb::list parameters = new_list(), pointers = new_list();
    for (const auto &parameter : use.parameters)
        parameters.append(nb::make_tuple(parameter.offset, parameter.size));
    for (const auto &pointer : use.pointers)
        pointers.append(
            nb::make_tuple(pointer.offset, kinds[int(pointer.kind)], pointer.possible, decoded(pointer.label)));
    return nb::make_tuple(parameters, pointers, use.complete);
}

} // namespace tcuda
