// Every source file includes this header first if Python is 3.10. There PyObject_Vectorcall() is an inline function,
// which the linker cannot replace. The macro replaces its calls by calls of a function in interpreter_calls.cpp.
#pragma once

#include <Python.h>

extern "C" PyObject *tcuda_vectorcall(PyObject *callable, PyObject *const *args, size_t count, PyObject *names);
#define PyObject_Vectorcall tcuda_vectorcall
