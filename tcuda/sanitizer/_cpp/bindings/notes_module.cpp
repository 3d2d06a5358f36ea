#include <nanobind/nanobind.h>

#include <vector>

#include "sanitizer/_cpp/bindings/call_slot.hpp"
#include "sanitizer/_cpp/bindings/noted_calls.hpp"
#include "sanitizer/_cpp/bindings/noted_stacks.hpp"
#include "sanitizer/_cpp/bindings/python_notes.hpp"
#include "sanitizer/_cpp/bindings/use_reader.hpp"

namespace nb = nanobind;

namespace tcuda {
namespace {

using NamedUse = races::RaceDetector::NamedUse;

void make_notes(PythonNotes *self, nb::handle accesses) {
    const nb::object tuple = nb::steal(PySequence_Tuple(accesses.ptr()));
    std::vector<NamedUse> uses;
    if (!tuple.is_valid() || !read_uses(tuple.ptr(), &uses))
        nb::raise_python_error();
    new (self) PythonNotes(uses);
}

} // namespace

// Adds the class and the functions by which Python notes the memory of calls.
void bind_notes(nb::module_ &module) {
    nb::class_<PythonNotes>(module, "Notes", R"(
    The memory that the kernels of a thread use, as a program tells it.

    Args:
        accesses: Tuples as :meth:`RaceDetector.work` takes them.)")
        .def("__init__", make_notes, nb::arg("accesses"),
             nb::sig("def __init__(self, accesses: Sequence[RaceUse]) -> None"))
        .def("begin", &PythonNotes::begin, nb::lock_self(), "Let the notes hold in this thread.")
        .def("end", &PythonNotes::end, nb::lock_self(),
             "End what :meth:`begin` has begun; return False if the notes hold in another thread.");
    module.def("note_calls", note_calls, nb::arg("type"), nb::arg("array_type"), nb::arg("pointer_type"),
               nb::arg("prepare"),
               nb::sig("def note_calls(type: type[Any], array_type: type[Any], pointer_type: type[Any], prepare: "
                       "Callable[[Any], tuple[str, ...]]) -> None"),
               R"(
    Note the arrays that the calls of the objects of a type are given.

    Args:
        type: A type whose objects are called with a grid, a block and the arguments of a kernel.
        array_type: The type of arrays.
        pointer_type: The type of pointers to memory.
        prepare: The function that is called with an object before its first call, and that returns the names of the
            parameters of its kernel.

    Raises:
        RuntimeError: The calls of a type are noted already, or Python's type has no slot for calls.)");
    module.def("stop_noting_calls", stop_noting_calls, "End what :func:`note_calls` has begun.");
    module.def("note_stacks_of", note_stacks_of, nb::arg("type"),
               nb::sig("def note_stacks_of(type: type[Any]) -> None"), R"(
    Note the stack when an object of a type is called, for work that the call queues without Python's lock.

    A second call for the same type does nothing.

    Args:
        type: A type whose calls run no code of the program.

    Raises:
        RuntimeError: Python's type has no slot for calls, or there are too many types.)");
    module.def("stop_noting_stacks", stop_noting_stacks, "End the notes of :func:`note_stacks_of` for all types.");
    module.def("check_calls", check_calls, nb::arg("function").none(),
               nb::sig("def check_calls(function: Callable[[tuple[tuple[Any, ...], dict[str, Any] | None]], object] | "
                       "None) -> None"),
               R"(
    Call a function before each call that :func:`note_calls` or :func:`note_stacks_of` follows.

    Args:
        function: A function that takes the positional arguments and the named arguments of the call. An exception of
            the function refuses the call. None ends that.)");
    module.def("forget_prepared_calls", forget_prepared_calls, "Let :func:`note_calls` prepare all objects again.");
}

} // namespace tcuda
