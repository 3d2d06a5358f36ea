// The slot for the calls of a type, whose function can be replaced.
#pragma once

#include <Python.h>
#include <nanobind/nanobind.h>

namespace tcuda {

struct CallSlot {
    void **place;
    ternaryfunc function; // the function in the slot now
};

// Throws std::runtime_error if the slot is not found beyond doubt.
CallSlot call_slot_of(nanobind::handle type);

// Lets `function` be called before each call whose function is replaced, with a tuple: the positional arguments, and
// the dictionary of the others or None. An exception of the function refuses the call. None ends that.
void check_calls(nanobind::object function);

// Whether that function refuses no call with these arguments; else a Python error is set. `named` may be null.
bool passes_check(PyObject *positional, PyObject *named);

} // namespace tcuda
