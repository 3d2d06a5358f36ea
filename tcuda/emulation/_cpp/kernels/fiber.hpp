// A fiber, and a queue of fibers.
#pragma once

#include "emulation/_cpp/kernels/context.hpp"
#include <tcuda_abi.h>

namespace tcuda {

// The stack and the state of a thread of a block. When the thread has returned, the next thread uses the same fiber.
// The fields that a switch touches fit in one line of the cache.
struct alignas(64) Fiber {
    // The reason for which the thread waits.
    enum class Wait : unsigned { nothing, block, warp, convergence, pause, phase };

    Context context;
    Fiber *next = nullptr; // the next fiber of a queue
    Wait wait = Wait::nothing;
    unsigned rank = 0;
    abi::Index thread{};
    unsigned place = 0;           // among the stacks
    unsigned mask = 0;            // the mask of an exchange
    unsigned long long value = 0; // the value that the thread gives to an exchange
    unsigned present = 0;         // the lanes of a finished exchange
    unsigned result = 0;          // the place of the values of a finished exchange
    const void *site = nullptr;   // the place of the code behind the call in which the thread waits
};

// Fibers in the order of their arrival. A fiber is in at most one queue.
class FiberQueue {
public:
    Fiber *first() const { return first_; }

    void push(Fiber *fiber) {
        fiber->next = nullptr;
        (first_ == nullptr ? first_ : last_->next) = fiber;
        last_ = fiber;
    }

    // The first fiber; null if the queue is empty.
    Fiber *pop() {
        Fiber *fiber = first_;
        if (fiber != nullptr)
            first_ = fiber->next;
        return fiber;
    }

    // Takes the fibers of the other queue, and leaves that queue empty.
    void append(FiberQueue &other) {
        if (other.first_ == nullptr)
            return;
        (first_ == nullptr ? first_ : last_->next) = other.first_;
        last_ = other.last_;
        other.first_ = nullptr;
    }

private:
    Fiber *first_ = nullptr;
    Fiber *last_ = nullptr;
};

} // namespace tcuda
