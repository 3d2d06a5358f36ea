#include "emulation/_cpp/kernels/block_fibers.hpp"

namespace tcuda {

void Grid::run_threads(void *grid) {
    auto &self = *static_cast<Grid *>(grid);
    Fiber *fiber = self.current_;
    for (;;) {
        self.launch_.kernel->run(self.launch_.arguments.data());
        self.started_ = self.threads_;
        self.progress_ = true;
        self.note_event();
        if (self.fiber_of_[fiber->rank] == fiber)
            self.fiber_of_[fiber->rank] = nullptr;
        self.spare_.push(fiber);
        ++self.spare_fibers_;
        self.go_on();
    }
}

// Called when all threads of the block that have not returned wait.
Fiber *Grid::next_of_waiting() {
    while (waiting_ != 0) {
        if (take_interruption())
            return nullptr;
        unpark();
        if (Fiber *fiber = ready_.pop())
            return fiber;
        if (!finish_meetings() && !release_converged()) {
            // If each thread that looks at a barrier has looked again, the looks change nothing.
            const bool idle = looks_ > threads_;
            if (idle && can_change_block() && quiet_changes_ <= 2 * blocks_) {
                changes_block_ = true;
                return nullptr;
            }
            Fiber *fiber = idle ? nullptr : paused_.pop();
            if (fiber != nullptr) {
                release(fiber);
            } else if (!release_block()) {
                failed_ = true;
                failure_.kind = "deadlock";
                return nullptr;
            }
        }
        if (Fiber *fiber = ready_.pop())
            return fiber;
    }
    return nullptr;
}

Fiber *Grid::spare_fiber() {
    if (Fiber *fiber = spare_.pop()) {
        --spare_fibers_;
        return fiber;
    }
    const std::size_t place = fibers_used_++;
    ThreadStacks &stacks = *stacks_[place / ThreadStacks::count];
    const std::size_t in_stacks = place % ThreadStacks::count;
    stacks.guard_up_to(in_stacks + 1);
    Fiber *fiber = &fibers_[place / threads_][place % threads_];
    fiber->place = static_cast<unsigned>(place);
    fiber->context.prepare(stacks.bottom(in_stacks), stacks.top(in_stacks), run_threads, this);
    return fiber;
}

} // namespace tcuda
