// The Python frames of a thread, read without Python's lock.
#pragma once

#include <Python.h>

#include <cstdint>
#include <vector>

#include "bindings/stack_table.hpp"

namespace tcuda {

// A frame as the interpreter has it. Equal marks stand for equal frames as long as the code object is alive.
struct FrameMark {
    std::uintptr_t code, instruction, owner;
    bool operator==(const FrameMark &other) const {
        return code == other.code && instruction == other.instruction && owner == other.owner;
    }
};
using FrameMarks = std::vector<FrameMark>;

// The frames of a thread, innermost first. The code objects are borrowed.
struct WalkedFrames {
    StackFrames frames;
    FrameMarks marks;         // also of the interpreter's own frames
    bool all_finished = true; // otherwise the interpreter still prepares a frame, which is not in `frames` yet
};

// Finds the frames of a thread of Python. The caller must be that thread, and the interpreter must not delete the state
// of the thread meanwhile. Calls no function of Python. Throws std::bad_alloc.
using FrameWalk = void(PyThreadState *thread, WalkedFrames *walked);

// The walk for this version of Python; null for an unknown version, and for builds without the global lock: there,
// other threads may change the frames.
FrameWalk *frame_walk();

// The same walk for a first try. Each access is checked: memory that cannot be read ends the walk, not the process.
FrameWalk *careful_frame_walk();

// Whether a thread has exactly the marked frames. The comparison reads no code object, so it takes less time than the
// walk. The caller must be that thread. Null where frame_walk() is null.
using FrameComparison = bool(PyThreadState *thread, const FrameMarks &marks);
FrameComparison *frame_comparison();

// Before Python 3.11, Python itself has no function for the instruction of a frame.
#if PY_VERSION_HEX < 0x030B0000
int instruction_of_frame(PyObject *frame);
#endif

} // namespace tcuda
