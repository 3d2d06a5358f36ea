// The Python frames of a thread, read without Python's lock.
#pragma once

#include <Python.h>

#include "bindings/stack_table.hpp"

namespace tcuda {

// Adds the frames of a thread of Python to `frames`, innermost first. The code objects are borrowed. The caller must be
// that thread, and the interpreter must not delete the state of the thread meanwhile. Calls no function of Python.
// Throws std::bad_alloc.
using FrameWalk = void(PyThreadState *thread, StackFrames *frames);

// The walk for this version of Python; null for an unknown version, and for builds without the global lock: there,
// other threads may change the frames.
FrameWalk *frame_walk();

// The same walk for a first try. Each access is checked: memory that cannot be read ends the walk, not the process.
FrameWalk *careful_frame_walk();

// Before Python 3.11, Python itself has no function for the instruction of a frame.
#if PY_VERSION_HEX < 0x030B0000
int instruction_of_frame(PyObject *frame);
#endif

} // namespace tcuda
