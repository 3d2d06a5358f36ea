#pragma once

#include <atomic>
#include <new>

#include "memory/records/stack_id.hpp"

namespace tcuda {

// The Python stack of the caller. The bindings connect the function that notes the stack. A program without Python
// leaves the function unconnected, and has no stacks.
class CallerStack {
public:
    using Note = StackId();

    static void connect(Note *note) { note_.store(note, std::memory_order_relaxed); }

    // The number of the stack; 0 if there is none. Called without a lock, because the function calls Python.
    static StackId note() {
        const auto note = note_.load(std::memory_order_relaxed);
        try {
            return note == nullptr ? 0 : note();
        } catch (const std::bad_alloc &) {
            return 0; // without host memory, only the stack is lost
        }
    }

private:
    static inline std::atomic<Note *> note_{nullptr};
};

} // namespace tcuda
