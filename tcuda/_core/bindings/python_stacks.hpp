// Python stacks, each kept once and named by a number.
#pragma once

#include <Python.h>

#include "allocator/block.hpp"

namespace tcuda {

// The stack of the Python code that runs in this thread; stack_without_frames if none does. The code objects of a stack stay alive for the
// rest of the process, so a program that makes new code all the time should not have its stacks noted all the time.
StackId note_python_stack();

// Whether this thread runs Python code now.
bool holds_python_lock();

// A list of {"name", "filename", "line"}, innermost first. New reference; null with a Python error set if that fails.
PyObject *frames_of(StackId stack);

} // namespace tcuda
