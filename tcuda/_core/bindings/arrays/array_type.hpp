// The type of the arrays of the array library, with which the core reads and makes arrays.
#pragma once

#include <nanobind/nanobind.h>

#include "bindings/arrays/array_addresses.hpp"
#include "bindings/arrays/array_maker.hpp"
#include "bindings/python/attribute.hpp"

namespace tcuda {

struct ArrayType {
    // The binding keeps `addresses_` alive. ArrayMaker explains `base` and `initialize`.
    ArrayType(const ArrayAddresses &addresses_, nanobind::object base, nanobind::object initialize)
        : ArrayType(addresses_, nanobind::borrow(addresses_.type()), std::move(base), std::move(initialize)) {}

    const ArrayAddresses &addresses;
    const Attribute dtype, shape, ndim, size, strides, c_contiguous;
    const ArrayMaker maker;

private:
    ArrayType(const ArrayAddresses &addresses_, nanobind::object type, nanobind::object base,
              nanobind::object initialize)
        : addresses(addresses_), dtype(type.attr("dtype")), shape(type.attr("shape")), ndim(type.attr("ndim")),
          size(type.attr("size")), strides(type.attr("strides")), c_contiguous(type.attr("_c_contiguous")),
          maker(type, std::move(base), std::move(initialize)) {}
};

} // namespace tcuda
