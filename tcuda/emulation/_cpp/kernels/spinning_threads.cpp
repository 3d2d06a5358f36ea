// The part of a Grid that lets other threads run while a thread looks at memory in a loop.
#include <utility>

#include "emulation/_cpp/kernels/block_fibers.hpp"

namespace tcuda {
namespace {

constexpr unsigned pauses_between_looks = 4096; // pauses between two looks at the clock
constexpr unsigned idle_pauses = 1024; // pauses after which a block waits for another block
constexpr unsigned most_idle_looks = 1; // in another order, while other blocks wait for their turn

} // namespace

void Grid::pause(void *grid) {
    auto &self = *static_cast<Grid *>(grid);
    self.looks_ = 0;
    self.quiet_changes_ = 0;
    self.take_interruption_of_pause();
    const unsigned most_idle = (self.launch_.order == 0 ? idle_pauses : idle_pauses / 8) + 4 * self.threads_;
    if (++self.idle_pauses_ > most_idle && self.started() == self.threads_ && self.can_change_block()) {
        self.wait_for_other_block();
        return;
    }
    // In another order, a block that waits for a block that has not begun shall take little time.
    if (self.pauses_++ % (self.launch_.order == 0 ? pauses_between_looks : pauses_between_looks / 8) == 0)
        self.look_at_clock();
    self.yield();
}

void Grid::await(void *grid, bool first, const void *site) {
    auto &self = *static_cast<Grid *>(grid);
    self.take_interruption_of_pause();
    if (first)
        self.note_event();
    else
        ++self.looks_;
    self.bind(self.current_);
    self.current_->site = site;
    self.wait(Fiber::Wait::phase, &self.paused_);
}

void Grid::take_interruption_of_pause() {
    if (interrupt_.load(std::memory_order_relaxed) && take_interruption())
        interrupt_thread(false);
}

// Before an access to a volatile variable: each thread makes one such access before any thread makes the next. So the
// lanes of a warp see what the other lanes have written before.
void Grid::step(void *grid, bool write) {
    static_cast<Grid *>(grid)->progress_ |= write;
    pause(grid);
}

void Grid::look_at_clock() {
    const auto now = std::chrono::steady_clock::now();
    const unsigned started = this->started();
    if (std::exchange(progress_, false) || std::exchange(last_started_, started) != started)
        last_progress_ = now, idle_looks_ = 0;
    else if (launch_.order != 0 && block_place_ + 1 != blocks_ && ++idle_looks_ > most_idle_looks)
        fail(this, "unfinished", "", "", 0, "", nullptr); // The block may wait for another block.
    else if (now - last_progress_ > launch_.patience)
        fail(this, "timeout",
             "threads of the block spin, and no thread of the block returns, reaches a barrier or writes a volatile "
             "variable",
             "", 0, "", nullptr);
}

// In a fiber: lets all other threads of the block that can go on run before this thread.
void Grid::yield() {
    const bool alone = waiting_ == 0 && ready_.first() == nullptr && started() == threads_;
    if (alone)
        return;
    bind(current_);
    wait(Fiber::Wait::pause, &paused_);
}

// In a fiber that waits for another block: lets the block rest.
void Grid::wait_for_other_block() {
    Fiber *fiber = current_;
    bind(fiber);
    fiber->wait = Fiber::Wait::pause;
    fiber->thread = *interface_.thread;
    ++waiting_;
    paused_.push(fiber);
    changes_block_ = true;
    fiber->context.switch_to(scheduler_);
}

} // namespace tcuda
