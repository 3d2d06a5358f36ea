// The parameters of a kernel, and the conversion of Python's arguments.
#pragma once

#include <nanobind/nanobind.h>

#include <cstddef>
#include <vector>

#include "bindings/arrays/array_addresses.hpp"
#include "kernels/parameter.hpp"

namespace tcuda {

class KernelParameters {
public:
    // If `arrays` is null, the addresses of all arrays are looked up by the names of attributes.
    KernelParameters(std::vector<Parameter> parameters, const ArrayAddresses *arrays);

    std::size_t count() const { return parameters_.size(); }
    std::size_t bytes() const { return bytes_; }
    const std::vector<Parameter> &list() const { return parameters_; }

    // Writes the elements of the tuple `arguments` to the `bytes()` bytes at `buffer`. `device` is the device of the
    // kernel, or -1 if the devices of arrays are not checked. False with a Python error set, whose message has the name
    // of the kernel, if the arguments do not fit the parameters.
    bool pack(PyObject *name, PyObject *arguments, int device, std::byte *buffer) const;

private:
    const std::vector<Parameter> parameters_;
    const ArrayAddresses *const arrays_;
    std::size_t bytes_ = 0;
};

} // namespace tcuda
