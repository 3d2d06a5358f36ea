// Python stacks, which the core names by numbers.
#pragma once

#include <Python.h>

#include <chrono>

#include "allocator/block.hpp"

namespace tcuda {

// The stack of the Python code that runs in this thread; stack_without_frames if the thread runs no Python code. The
// code objects of a noted stack stay alive until the end of the process. So the table grows all the time in a program
// that makes new code all the time.
StackId note_python_stack();

// The same for a callback of the driver, in a thread that may have given Python's lock back: the frames of that thread
// stand still meanwhile. Runs no Python code, and waits at most for the patience of begin_stack_notes(). The same stack has
// the same number with and without the lock. If the wait was in vain, frames of code that was never noted are left out. Without the
// lock, the result is stack_without_frames before begin_stack_notes(), after the end of the interpreter has begun, and
// where notes_stacks_without_lock() is false.
StackId note_any_stack() noexcept;

// Begins and ends the time in which note_any_stack() can note new code without Python's lock. Counted. The caller holds
// the lock. The first begin compares stacks that are noted with and without the lock.
void begin_stack_notes(std::chrono::milliseconds patience = std::chrono::milliseconds(20));
void end_stack_notes();

// Whether this Python is one whose frames the core can read without the lock. False before the first
// begin_stack_notes(), and always for Python without the global lock.
bool notes_stacks_without_lock();

// A list of {"name", "filename", "line"}, innermost first. New reference; null with a Python error set if that fails.
PyObject *frames_of(StackId stack);

} // namespace tcuda
