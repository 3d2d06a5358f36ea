#include "bindings/threads/python_lock.hpp"

#include <Python.h>

#include "bindings/threads/cpython_functions.hpp"
#include "threads/interpreter.hpp"

namespace tcuda {

bool holds_python_lock() {
    PyThreadState *const current = cpython.current_thread == nullptr ? nullptr : cpython.current_thread();
    return current != nullptr && current == PyGILState_GetThisThreadState();
}

void connect_interpreter() {
    Interpreter::connect([]() -> void * { return holds_python_lock() ? PyEval_SaveThread() : nullptr; },
                         [](void *left) { PyEval_RestoreThread(static_cast<PyThreadState *>(left)); },
                         []() -> void * {
                             PyGILState_Ensure();
                             return PyEval_SaveThread();
                         },
                         [](void *begun) {
                             PyEval_RestoreThread(static_cast<PyThreadState *>(begun));
                             PyGILState_Release(PyGILState_UNLOCKED);
                         });
}

} // namespace tcuda
