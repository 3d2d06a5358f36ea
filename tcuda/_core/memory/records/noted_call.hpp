#pragma once

#include <utility>

#include "memory/records/stack_id.hpp"

namespace tcuda {

// The Python stack of the call that this thread is in, while the history notes the stacks of such calls. Everything
// that the call causes finds the stack here, so the stack is no argument of all these functions.
class NotedCall {
public:
    // Does nothing unless `recording`, so that a call without a history costs nothing.
    NotedCall(bool recording, StackId stack) : recording_(recording) {
        if (recording_)
            before_ = std::exchange(current_, stack);
    }
    ~NotedCall() {
        if (recording_)
            current_ = before_;
    }
    NotedCall(const NotedCall &) = delete;
    NotedCall &operator=(const NotedCall &) = delete;

    // The stack of the current call; 0 if the history did not ask for it.
    static StackId stack() { return current_; }

private:
    inline static thread_local StackId current_ = 0;
    const bool recording_;
    StackId before_ = 0;
};

} // namespace tcuda
