// Python stacks, which the core names by numbers.
#pragma once

#include <Python.h>

#include "allocator/block.hpp"

namespace tcuda {

// The stack of the Python code that runs in this thread; stack_without_frames if the thread runs no Python code. The
// code objects of a noted stack stay alive until the end of the process. So the table grows all the time in a program
// that makes new code all the time.
StackId note_python_stack();

// A list of {"name", "filename", "line"}, innermost first. New reference; null with a Python error set if that fails.
PyObject *frames_of(StackId stack);

} // namespace tcuda
