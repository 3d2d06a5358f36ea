// The part of the Python module that notes stacks.
#include <nanobind/nanobind.h>

#include "bindings/python/checked.hpp"
#include "bindings/threads/python_stacks.hpp"

namespace nb = nanobind;

namespace tcuda {

void bind_stacks(nb::module_ &module) {
    module.def(
        "frames_of", [](StackId stack) { return checked(frames_of(stack)); }, nb::arg("stack"),
        nb::sig("def frames_of(stack: int) -> list[dict[str, Any]]"),
        "Return the name, filename and line of each frame of a noted stack, innermost first.");
    module.def("note_stack", note_any_stack,
               "Return the number of the Python stack of this thread, which :func:`frames_of` takes.");
}

} // namespace tcuda
