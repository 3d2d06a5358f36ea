// Calls of NumPy that give no warnings of floating-point errors.
#pragma once

#include <nanobind/nanobind.h>

#include "bindings/python/owned.hpp"
#include "bindings/python/raised.hpp"

namespace tcuda {

// Up to Python 3.11, the garbage collector may run in the middle of a change of a context variable. A finalizer that
// changes the context of the thread meanwhile frees what the change reads. So with such a Python a call runs in a copy
// of the context: the call may be a finalizer's, and leaves the context of the thread alone. Code in the call sees the
// variables of the program; a change that such code makes ends with the call.
class QuietCalls {
public:
    // `silence` is called with `silent` before a call, and `restore` with the result after the call. Both are methods
    // of the context variable with NumPy's treatment of errors.
    QuietCalls(nanobind::object silence, nanobind::object silent, nanobind::object restore)
        : silence_(std::move(silence)), silent_(std::move(silent)), restore_(std::move(restore)) {}

    // Returns the result of `make_call`, a new reference. Null with a Python error set if the call fails.
    template <typename MakeCall> PyObject *call(const MakeCall &make_call) const {
        const Owned before(begin());
        if (!before)
            return nullptr;
        Owned result(make_call());
        Raised raised;
        if (!result)
            raised.take();
        if (!end(before.get()))
            raised.take();
        return raised.set_again() ? nullptr : result.release();
    }

private:
    PyObject *begin() const;
    bool end(PyObject *before) const;

    nanobind::object silence_, silent_, restore_;
};

// Adds the class to the module, and a function that sets a context variable.
void bind_quiet_calls(nanobind::module_ &module);

} // namespace tcuda
