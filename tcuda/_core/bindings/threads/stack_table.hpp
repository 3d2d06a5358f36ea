// The table of the Python stacks that were noted, each kept once under a number.
#pragma once

#include <Python.h>

#include <deque>
#include <mutex>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "memory/allocator/block.hpp"

namespace tcuda {

struct StackFrame {
    PyObject *code = nullptr;
    int place = 0; // the instruction
    bool operator==(const StackFrame &other) const { return code == other.code && place == other.place; }
};

using StackFrames = std::vector<StackFrame>; // innermost first

// The table owns a reference to each code object in it. So an address in the table always means the same code object.
//
// Lock rule: under `mutex_` nothing is called but Py_INCREF. A fork waits for the mutex, because Python without the
// global lock forks while other threads note stacks.
class StackTable {
public:
    StackTable();

    // The number of a stack that is not empty. The caller holds Python's lock, and the code objects are alive.
    StackId number(const StackFrames &frames);

    StackFrames frames(StackId number);

private:
    std::mutex mutex_;
    std::deque<StackFrames> stacks_{StackFrames{}, StackFrames{}}; // by number; the first two are those of StackId
    std::unordered_multimap<std::size_t, StackId> by_hash_;
    std::unordered_set<PyObject *> codes_;
};

// The table of the process. The table, and the code objects in it, live until the end of the process.
StackTable &stack_table();

} // namespace tcuda
