#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <tuple>

#include "bindings/arrays/array_addresses.hpp"
#include "bindings/arrays/array_type.hpp"
#include "bindings/kernels/kernel_function.hpp"
#include "bindings/kernels/kernel_parameters.hpp"
#include "bindings/python/checked.hpp"
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

} // namespace

// Adds the parameters of kernels, and the callables that launch kernels, to the module.
void bind_kernels(nb::module_ &module) {
    nb::class_<ArrayAddresses>(module, "ArrayAddresses", R"(
    The addresses of the arrays of ``type``. Descriptors read the addresses faster than attributes would.

    Args:
        type: The class of the arrays. The addresses of other arrays, also of subclasses, are looked up by the names of
            the attributes.
        data: The descriptor of ``array.data``.
        ptr: The descriptor of ``array.data.ptr``.
        device_id: The descriptor of ``array.data.device_id``; None if all arrays are on one device.
        reach: A function of the current device and the device of an array on another device. The function raises an
            exception if a kernel cannot use that array.)")
        .def(nb::init<nb::type_object, nb::object, nb::object, nb::object, nb::object>(), nb::arg("type"),
             nb::arg("data"), nb::arg("ptr"), nb::arg("device_id").none() = nb::none(),
             nb::arg("reach").none() = nb::none(),
             nb::sig("def __init__(self, type: type, data: object, ptr: object, device_id: object | None=None, reach: "
                     "Callable[[int, int], object] | None=None) -> None"));

    nb::class_<ArrayType>(module, "ArrayType", R"(
    The type of the arrays that the core reads and makes.

    An array is made by a call of the type. If ``initialize`` is given, an array is made as an object of ``base``, which
    leaves out functions that are written in Python.

    Args:
        addresses: The addresses of the arrays of the type.
        base: A base of the type, written in C.
        initialize: A function that gives the shape and the dtype to a new array:
            ``initialize(array, shape, dtype, None, None, None)``, with no memory, strides and order.)")
        .def(nb::init<const ArrayAddresses &, nb::object, nb::object>(), nb::arg("addresses"),
             nb::arg("base").none() = nb::none(), nb::arg("initialize").none() = nb::none(), nb::keep_alive<1, 2>(),
             nb::sig("def __init__(self, addresses: ArrayAddresses, base: type | None=None, initialize: Callable[..., "
                     "object] | None=None) -> None"));

    nb::class_<KernelParameters>(module, "KernelParameters", R"(
    The parameters of a kernel.

    Args:
        parameters: The kind, the size and the offset of each parameter, the last two in bytes. The kinds are ``"p"``
            (pointer), ``"i"`` (signed integer), ``"u"`` (unsigned integer), ``"f"`` (half, float or double), ``"g"``
            (bfloat16), ``"b"`` (bool) and ``"s"`` (struct).
        arrays: The reader of the addresses of arrays; None to read ``array.data.ptr`` by name.

    Raises:
        ValueError: A kind does not exist, or no parameter of a kind has the given size.)")
        .def("__init__", make_parameters, nb::arg("parameters"), nb::arg("arrays").none() = nb::none(),
             nb::keep_alive<1, 3>());

    nb::class_<KernelLauncher>(module, "KernelLauncher", R"(
    A compiled kernel on the devices on which the kernel is loaded.

    Raises:
        RuntimeError: The machine has no driver.)")
        .def(nb::init<>())
        .def("add", &KernelLauncher::add, nb::arg("function"), nb::arg("device"),
             "Add the ``CUfunction`` of the kernel for the current context, which is the context of ``device``.");

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
        nb::arg("configure").none() = nb::none(),
        nb::sig("def cuda_kernel(name: str, parameters: KernelParameters, launcher: KernelLauncher, current_stream: "
                "object, repair: Callable[[int, int, tuple[int, int, int], tuple[int, int, int], int], object], "
                "configure: Callable[[int], None] | None=None) -> KernelFunction"),
        R"(
    Return a kernel that the driver launches.

    Args:
        name: The name of the kernel, for messages.
        parameters: The parameters of the kernel.
        launcher: The kernel on each device.
        current_stream: A capsule with CuPy's C function that returns the handle of the current stream.
        repair: A function that is called with the status of a failed launch, the number of failures before, grid,
            block and shared memory. The status is 201 if the kernel is not loaded for the current context. After the
            function returns, the launch is tried again.
        configure: The attribute ``set_shared_memory_config``.)");
    module.def(
        "python_kernel",
        [type](nb::str name, nb::object parameters, nb::object launch, nb::object configure) {
            return checked(make_kernel_function(type.ptr(), {name.ptr(), parameters.ptr(),
                                                             nb::cast<const KernelParameters *>(parameters), Py_None,
                                                             nullptr, nullptr, launch.ptr(), configure.ptr()}));
        },
        nb::arg("name"), nb::arg("parameters"), nb::arg("launch"), nb::arg("configure").none() = nb::none(),
        nb::sig("def python_kernel(name: str, parameters: KernelParameters, launch: Callable[[tuple[int, int, int], "
                "tuple[int, int, int], bytes, tuple[Any, ...], int, Any], object], configure: Callable[[int], None] | "
                "None=None) -> KernelFunction"),
        R"(
    Return a kernel that ``launch`` launches.

    Args:
        name: The name of the kernel, for messages.
        parameters: The parameters of the kernel.
        launch: A function that is called with grid, block, the packed arguments, the arguments, shared memory and the
            stream, which is None for the current stream.
        configure: The attribute ``set_shared_memory_config``.)");
}

} // namespace tcuda
