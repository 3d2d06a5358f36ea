// The table of the Python stacks that were noted, each kept once under a number.
#pragma once

#include <Python.h>

#include <deque>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "allocator/block.hpp"

namespace tcuda {

struct StackFrame {
    PyObject *code = nullptr;
    int place = 0; // the instruction; before Python 3.11, the line with a negative sign
    bool operator==(const StackFrame &other) const { return code == other.code && place == other.place; }
};

using StackFrames = std::vector<StackFrame>; // innermost first

// Lock rule: nothing is called under `mutex_`.
class StackTable {
public:
    // The number of a stack. `*is_new` says whether the table has added the stack: the references of the frames then
    // belong to the table.
    StackId number(const StackFrames &frames, bool *is_new);

    StackFrames frames(StackId number);

private:
    std::mutex mutex_;
    std::deque<StackFrames> stacks_{StackFrames{}, StackFrames{}}; // by number; the first two are those of StackId
    std::unordered_multimap<std::size_t, StackId> by_hash_;
};

// The table of the process. The table, and the code objects in it, live until the end of the process.
StackTable &stack_table();

} // namespace tcuda
