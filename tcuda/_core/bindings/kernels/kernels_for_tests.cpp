// The arguments of a kernel after their conversion by the parameters, for tests.
#include <nanobind/nanobind.h>

#include <cstddef>
#include <vector>

#include "bindings/kernels/kernel_parameters.hpp"
#include "bindings/python/containers.hpp"

namespace nb = nanobind;

namespace tcuda {
namespace {

nb::list list_of(const KernelParameters &parameters) {
    nb::list found = new_list();
    for (const Parameter &parameter : parameters.list())
        found.append(nb::make_tuple(nb::str(reinterpret_cast<const char *>(&parameter.kind), 1), parameter.size,
                                    parameter.offset));
    return found;
}

nb::bytes pack(const KernelParameters &parameters, nb::str name, nb::tuple arguments) {
    std::vector<std::byte> buffer(parameters.bytes());
    if (!parameters.pack(name.ptr(), arguments.ptr(), -1, buffer.data()))
        nb::raise_python_error();
    return nb::bytes(buffer.data(), buffer.size());
}

} // namespace

void bind_kernels_for_tests(nb::module_ &module) {
    module.def("list_of_parameters", list_of, nb::arg("parameters"),
               "Return the kind, the size and the offset of each parameter of a ``KernelParameters``.");
    module.def("packed_arguments", pack, nb::arg("parameters"), nb::arg("name"), nb::arg("args"), R"(
    Return the bytes of ``args``, the arguments of the kernel ``name``.

    Raises:
        TypeError: The number of arguments differs from the number of parameters, or an argument has another type or
            size than its parameter.
        OverflowError: A number does not fit into its parameter.)");
}

} // namespace tcuda
