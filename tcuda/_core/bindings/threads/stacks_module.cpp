// The part of the Python module that notes stacks.
#include <nanobind/nanobind.h>

#include "bindings/threads/python_stacks.hpp"

namespace nb = nanobind;

namespace tcuda {

void bind_stacks(nb::module_ &module) {
    module.def(
        "frames_of",
        [](StackId stack) {
            nb::object list = nb::steal(frames_of(stack));
            if (!list.is_valid())
                nb::raise_python_error();
            return list;
        },
        nb::arg("stack"));
    module.def("note_stack", note_any_stack);
}

} // namespace tcuda
