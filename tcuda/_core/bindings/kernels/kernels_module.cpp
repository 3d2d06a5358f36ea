#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <tuple>

#include "bindings/arrays/array_addresses.hpp"
#include "bindings/arrays/array_type.hpp"
#include "bindings/kernels/kernel_function.hpp"
#include "bindings/kernels/kernel_parameters.hpp"
#include "kernels/kernel_launcher.hpp"

namespace nb = nanobind;

namespace tcuda {
namespace {

using PythonParameter = std::tuple<std::string, std::uint32_t, std::uint32_t>;

// The binding keeps `arrays` alive.
void make_parameters(KernelParameters *self, const std::vector<PythonParameter> &given, const ArrayAddresses *arrays) {
    std::vector<Parameter> parameters;
    parameters.reserve(given.size());
    for (const auto &[kind, size, offset] : given) {
        if (kind.size() != 1)
            throw nb::value_error("the kind of a parameter is one of the letters p, i, u, f, g, b and s");
        parameters.push_back(checked_parameter(kind[0], size, offset));
    }
    new (self) KernelParameters(std::move(parameters), arrays);
}

nb::object checked(PyObject *made) {
    if (made == nullptr)
        nb::raise_python_error();
    return nb::steal(made);
}

} // namespace

// Adds the parameters of kernels, and the callables that launch kernels, to the module.
void bind_kernels(nb::module_ &module) {
    nb::class_<ArrayAddresses>(module, "ArrayAddresses")
        .def(nb::init<nb::type_object, nb::object, nb::object, nb::object, nb::object>(), nb::arg("type"),
             nb::arg("data"), nb::arg("ptr"), nb::arg("device_id").none() = nb::none(),
             nb::arg("reach").none() = nb::none());

    nb::class_<ArrayType>(module, "ArrayType")
        .def(nb::init<const ArrayAddresses &, nb::object, nb::object>(), nb::arg("addresses"),
             nb::arg("base").none() = nb::none(), nb::arg("initialize").none() = nb::none(), nb::keep_alive<1, 2>());

    nb::class_<KernelParameters>(module, "KernelParameters")
        .def("__init__", make_parameters, nb::arg("parameters"), nb::arg("arrays").none() = nb::none(),
             nb::keep_alive<1, 3>());

    nb::class_<KernelLauncher>(module, "KernelLauncher")
        .def(nb::init<>())
        .def("add", &KernelLauncher::add, nb::arg("function"), nb::arg("device"));

    const nb::object type = checked(make_kernel_function_type());
    module.attr("KernelFunction") = type;
    module.def(
        "cuda_kernel",
        [type](nb::str name, nb::object parameters, nb::object launcher, nb::object current_stream, nb::object repair,
               nb::object configure) {
            return checked(make_kernel_function(
                type.ptr(), {name.ptr(), parameters.ptr(), nb::cast<const KernelParameters *>(parameters),
                             launcher.ptr(), nb::cast<const KernelLauncher *>(launcher),
                             current_stream_in(current_stream), repair.ptr(), configure.ptr()}));
        },
        nb::arg("name"), nb::arg("parameters"), nb::arg("launcher"), nb::arg("current_stream"), nb::arg("repair"),
        nb::arg("configure").none() = nb::none());
    module.def(
        "python_kernel",
        [type](nb::str name, nb::object parameters, nb::object launch, nb::object configure) {
            return checked(make_kernel_function(type.ptr(), {name.ptr(), parameters.ptr(),
                                                             nb::cast<const KernelParameters *>(parameters), Py_None,
                                                             nullptr, nullptr, launch.ptr(), configure.ptr()}));
        },
        nb::arg("name"), nb::arg("parameters"), nb::arg("launch"), nb::arg("configure").none() = nb::none());
}

} // namespace tcuda
