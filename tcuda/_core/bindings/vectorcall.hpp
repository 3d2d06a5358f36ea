// Included in front of everything where Python is 3.10, whose PyObject_Vectorcall() is inline: a call of a function by that
// name goes to interpreter_calls.cpp, as the linker leads there with later versions.
#pragma once

#include <Python.h>

extern "C" PyObject *tcuda_vectorcall(PyObject *callable, PyObject *const *args, size_t count, PyObject *names);
#define PyObject_Vectorcall tcuda_vectorcall
