#pragma once

#include <utility>

#include "memory/records/scope.hpp"
#include "memory/records/stack_id.hpp"

namespace tcuda {

// The Python stack of the call that this thread is in, while the history notes the stacks of such calls, and the scope
// of the allocation that this thread makes. Everything that the call causes finds both here, so they are no arguments
// of all these functions.
class NotedCall {
public:
    // Does nothing unless `recording` or in a scope, so that a call without a history costs nothing.
    NotedCall(bool recording, StackId stack, const Scope *scope = nullptr) : noted_(recording || scope != nullptr) {
        if (noted_)
            before_ = std::exchange(current_, {stack, scope});
    }
    ~NotedCall() {
        if (noted_)
            current_ = before_;
    }
    NotedCall(const NotedCall &) = delete;
    NotedCall &operator=(const NotedCall &) = delete;

    // The stack of the current call; 0 if the history did not ask for it.
    static StackId stack() { return current_.stack; }
    // The scope of the current allocation; null outside of all scopes.
    static const Scope *scope() { return current_.scope; }

private:
    struct Call {
        StackId stack;
        const Scope *scope;
    };
    inline static thread_local Call current_{0, nullptr};
    const bool noted_;
    Call before_; // set if `noted_`
};

} // namespace tcuda
