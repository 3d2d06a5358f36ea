// Functions of CPython that its stable ABI leaves out.
#pragma once

#include <Python.h>

namespace tcuda {

// A function is null where this version of Python has none of that name.
struct CpythonFunctions {
    // Public since Python 3.13. Returns null where no thread holds the lock and, since Python 3.12, where another
    // thread holds the lock. PyGILState_Check() is no substitute: in a process that has had a subinterpreter, it always
    // returns 1.
    PyThreadState *(*current_thread)();
    PyObject *(*frame_back)(PyObject *frame);
    int (*frame_instruction)(PyObject *frame);
    int (*code_line)(PyObject *code, int instruction);
    int (*is_finalizing)();
    int (*context_get)(PyObject *variable, PyObject *otherwise, PyObject **value);
};

// Looked up when the library is loaded.
extern const CpythonFunctions cpython;

} // namespace tcuda
