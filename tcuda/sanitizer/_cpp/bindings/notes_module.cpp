#include <nanobind/nanobind.h>

#include <vector>

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
    nb::class_<PythonNotes>(module, "Notes")
        .def("__init__", make_notes, nb::arg("accesses"))
        .def("begin", &PythonNotes::begin, nb::lock_self())
        .def("end", &PythonNotes::end, nb::lock_self());
    module.def("note_calls", note_calls, nb::arg("type"), nb::arg("array_type"), nb::arg("pointer_type"),
               nb::arg("prepare"));
    module.def("stop_noting_calls", stop_noting_calls);
    module.def("note_stacks_of", note_stacks_of, nb::arg("type"));
    module.def("stop_noting_stacks", stop_noting_stacks);
    module.def("forget_prepared_calls", forget_prepared_calls);
}

} // namespace tcuda
