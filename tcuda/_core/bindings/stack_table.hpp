// The table of the Python stacks that were noted, each kept once under a number.
#pragma once

#include <Python.h>

#include <deque>
#include <mutex>
#include <optional>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "allocator/block.hpp"

namespace tcuda {

struct StackFrame {
    PyObject *code = nullptr;
    int place = 0; // the instruction
    bool operator==(const StackFrame &other) const { return code == other.code && place == other.place; }
};

using StackFrames = std::vector<StackFrame>; // innermost first

// The table owns a reference to each code object in it. So an address in the table always means the same code object,
// and a stack of known code objects can be numbered without Python's lock.
//
// Lock rule: under `mutex_` nothing is called but Py_INCREF. A fork waits for the mutex.
class StackTable {
public:
    StackTable();

    // The number of a stack; nothing if the table does not own all of its code objects. Needs no lock of Python.
    std::optional<StackId> number(const StackFrames &frames);

    // Takes references to the code objects of a stack. The caller holds Python's lock, and the code objects are alive.
    void keep(const StackFrames &frames);

    // The frames whose code objects the table owns. Needs no lock of Python.
    StackFrames known(const StackFrames &frames);

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
