// The part of a Grid that runs the threads of a block on fibers: the functions that each wait of a thread calls.
#pragma once

#include <algorithm>
#include <utility>

#include "emulation/_cpp/kernels/grid.hpp"

namespace tcuda {

// The fiber that runs next; null at the end of the block, after a deadlock and at an interruption.
inline Fiber *Grid::next_fiber() {
    if (Fiber *fiber = ready_.pop())
        return fiber;
    return started_ < threads_ ? spare_fiber() : next_of_waiting();
}

inline void Grid::make_current(Fiber *fiber) {
    current_ = fiber;
    ++switches_;
    if (fiber->wait != Fiber::Wait::nothing) {
        fiber->wait = Fiber::Wait::nothing;
        *interface_.thread = fiber->thread;
        interface_.cursor->waited = true;
        if (races_ != nullptr)
            interface_.races->thread = fiber->rank;
    }
}

// In a fiber: lets the next fiber run, or goes back to the scheduler if no fiber can run. The processor predicts a
// switch from fiber to fiber better than two switches by way of the scheduler.
inline void Grid::go_on() {
    Fiber *fiber = current_;
    Fiber *next = next_fiber();
    if (next == nullptr) {
        fiber->context.switch_to(scheduler_);
        return;
    }
    make_current(next);
    if (next == fiber)
        return;
    if (const Fiber *after = ready_.first())
        after->context.prefetch();
    fiber->context.switch_to(next->context);
}

// In a fiber: lets other threads run until release() is called for the fiber.
inline void Grid::wait(Fiber::Wait reason, FiberQueue *queue) {
    Fiber *fiber = current_;
    fiber->wait = reason;
    fiber->thread = *interface_.thread;
    ++waiting_;
    if (queue != nullptr)
        queue->push(fiber);
    go_on();
}

inline void Grid::release(Fiber *fiber) {
    --waiting_;
    ready_.push(fiber);
}

inline void Grid::note_event() {
    looks_ = idle_pauses_ = 0;
    quiet_changes_ = 0;
}

inline const ThreadStacks *Grid::stacks_with(std::uintptr_t address) const {
    for (const auto &stacks : stacks_)
        if (stacks->contain(address))
            return stacks.get();
    return nullptr;
}

inline unsigned Grid::rank_of(abi::Index thread) const {
    return thread.x + launch_.block.x * (thread.y + launch_.block.y * thread.z);
}

inline abi::Index Grid::place_of(abi::Index thread) const {
    if (launch_.order != 1 || !launch_.races)
        return thread;
    const auto [x, y, z] = launch_.block;
    return {x - 1 - thread.x, y - 1 - thread.y, z - 1 - thread.z};
}

// In a fiber: the number of threads of the block that have been started.
inline unsigned Grid::started() const { return std::max(started_, rank_of(place_of(*interface_.thread)) + 1); }

// In a fiber, when its thread waits for the first time: lets the module start the threads after this one, which is the
// last that the module has started.
inline void Grid::note_started() {
    abi::Index next = place_of(*interface_.thread);
    const unsigned rank = rank_of(next);
    if (++next.x == launch_.block.x) {
        next.x = 0;
        if (++next.y == launch_.block.y) {
            next.y = 0;
            ++next.z;
        }
    }
    interface_.cursor->next = next;
    started_ = rank + 1;
}

// Notes which thread runs on the fiber.
inline void Grid::bind(Fiber *fiber) {
    const unsigned rank = rank_of(*interface_.thread);
    if (fiber_of_[rank] == fiber)
        return;
    note_started();
    if (fiber_of_[fiber->rank] == fiber)
        fiber_of_[fiber->rank] = nullptr;
    fiber->rank = rank;
    fiber_of_[rank] = fiber;
}

} // namespace tcuda
