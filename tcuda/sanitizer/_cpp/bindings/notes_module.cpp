#include <nanobind/nanobind.h>

#include <vector>

#include "bindings/python/containers.hpp"
#include "sanitizer/_cpp/bindings/noted_calls.hpp"
#include "sanitizer/_cpp/bindings/noted_stacks.hpp"
#include "sanitizer/_cpp/bindings/python_notes.hpp"
#include "sanitizer/_cpp/bindings/use_reader.hpp"
#include "sanitizer/_cpp/watch/call_notes.hpp"

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

nb::tuple described(const watch::NotedMemory &memory) {
    nb::list counts = new_list(), strides = new_list();
    for (const races::Dimension &dimension : memory.region.shape()) {
        counts.append(dimension.count);
        strides.append(dimension.stride);
    }
    return nb::make_tuple(memory.region.address(), memory.region.itemsize(), nb::tuple(counts), nb::tuple(strides),
                          memory.kind_known ? nb::int_(static_cast<int>(memory.kind)) : nb::object(nb::none()),
                          nb::str(memory.label.c_str(), memory.label.size()));
}

// The notes of this thread, the innermost first.
nb::list current_notes() {
    nb::list made = new_list();
    for (const watch::CallNotes *notes = watch::innermost_notes(); notes != nullptr; notes = notes->outer) {
        nb::list memory = new_list();
        for (const watch::NotedMemory &noted : notes->memory)
            memory.append(described(noted));
        made.append(nb::make_tuple(nb::str(notes->name.c_str(), notes->name.size()), memory, notes->exclusive));
    }
    return made;
}

} // namespace

// Adds the class and the functions by which Python notes the memory of calls.
void bind_notes(nb::module_ &module) {
    nb::class_<PythonNotes>(module, "Notes")
        .def("__init__", make_notes, nb::arg("accesses"))
        .def("begin", &PythonNotes::begin, nb::lock_self())
        .def("end", &PythonNotes::end, nb::lock_self());
    module.def("current_notes", current_notes);
    module.def("note_calls", note_calls, nb::arg("type"), nb::arg("array_type"), nb::arg("pointer_type"),
               nb::arg("prepare"));
    module.def("stop_noting_calls", stop_noting_calls);
    module.def("note_stacks_of", note_stacks_of, nb::arg("type"));
    module.def("stop_noting_stacks", stop_noting_stacks);
    module.def("forget_prepared_calls", forget_prepared_calls);
}

} // namespace tcuda
