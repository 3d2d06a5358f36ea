#include "bindings/scopes/thread_scopes.hpp"

#include <algorithm>
#include <iterator>
#include <mutex>
#include <new>
#include <vector>

namespace tcuda {
namespace {

using Stack = std::vector<EnteredScope>;

struct Stacks {
    std::mutex mutex;
    std::vector<Stack *> all;
};

Stacks *stacks = new Stacks; // lives for ever: threads may end after static objects

using Held = std::lock_guard<std::mutex>;

// The stack of this thread. A thread may end inside its scopes. Those scopes stay allocated: the thread may not call
// Python any more.
struct ThreadStack {
    ThreadStack() {
        const Held held(stacks->mutex);
        stacks->all.push_back(&scopes);
    }
    ~ThreadStack() {
        const Held held(stacks->mutex);
        stacks->all.erase(std::remove(stacks->all.begin(), stacks->all.end(), &scopes), stacks->all.end());
        for (const EnteredScope &scope : scopes)
            abandoned_scopes -= scope.abandoned;
    }
    Stack scopes;
};

Stack &own_stack() {
    thread_local ThreadStack stack;
    return stack.scopes;
}

} // namespace

bool note_entered(const EnteredScope &scope) {
    try {
        Stack &stack = own_stack();
        const Held held(stacks->mutex);
        stack.push_back(scope);
        return true;
    } catch (const std::bad_alloc &) {
        PyErr_NoMemory();
        return false;
    }
}

bool take_left(PyObject *owner, EnteredScope *taken) {
    const auto is_meant = [owner](const EnteredScope &scope) { return scope.owner == owner && !scope.abandoned; };
    Stack &own = own_stack();
    const Held held(stacks->mutex);
    const auto found = std::find_if(own.rbegin(), own.rend(), is_meant);
    if (found != own.rend()) {
        *taken = *found;
        own.erase(std::next(found).base());
        return true;
    }
    for (Stack *stack : stacks->all) {
        const auto other = std::find_if(stack->rbegin(), stack->rend(), is_meant);
        if (other != stack->rend()) {
            other->abandoned = true;
            ++abandoned_scopes;
            break;
        }
    }
    return false;
}

bool take_abandoned(EnteredScope *taken) {
    Stack &stack = own_stack();
    const Held held(stacks->mutex);
    if (stack.empty() || !stack.back().abandoned)
        return false;
    *taken = stack.back();
    stack.pop_back();
    --abandoned_scopes;
    return true;
}

void forget(const EnteredScope &scope) {
    Py_DECREF(scope.owner);
    Py_XDECREF(scope.stream_source);
    Py_XDECREF(scope.stream_target);
}

void forget_entered() {
    Stack left;
    left.swap(own_stack());
    stacks = new Stacks; // another thread of the parent may have held the lock
    stacks->all.push_back(&own_stack());
    abandoned_scopes = 0;
    for (const EnteredScope &scope : left)
        forget(scope);
}

} // namespace tcuda
