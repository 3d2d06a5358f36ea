// The part of a Grid that lets run() return in the middle of a kernel.
#include <utility>

#include "emulation/_cpp/kernels/block_fibers.hpp"

namespace tcuda {

// The checks of accesses fail from now on, so that the next access calls resolve(). Only the sizes change, so that no
// check passes by a slot that the kernel writes meanwhile. If the kernel overwrites a change, the next interruption
// repeats the change.
void Grid::interrupt() {
    interrupt_ = true;
    for (unsigned place = 0; place < abi::slot_count; ++place)
        __atomic_store_n(&interface_.slots[place].bytes, 0, __ATOMIC_RELAXED);
    if (recorder_ != nullptr)
        for (unsigned place = 0; place < abi::record_count; ++place) {
            __atomic_store_n(&interface_.records[place].bytes, 0, __ATOMIC_RELAXED);
            __atomic_store_n(&interface_.records[place].read_bytes, 0, __ATOMIC_RELAXED);
        }
    __atomic_store_n(interface_.own_bytes, 0, __ATOMIC_RELAXED);
    __atomic_store_n(interface_.written_bytes, 0, __ATOMIC_RELAXED);
}

bool Grid::take_interruption() {
    if (!interrupt_.load(std::memory_order_relaxed) || !interrupt_.exchange(false))
        return false;
    interrupted_ = true;
    return true;
}

bool Grid::Position::operator==(const Position &other) const {
    return block.x == other.block.x && block.y == other.block.y && block.z == other.block.z &&
           started == other.started && switches == other.switches;
}

// In a fiber: returns from run(). A thread that has run alone since the last interruption may wait in a loop for
// another thread, so the other threads go on before this thread. Otherwise the threads keep their order, which must not
// depend on the time.
void Grid::interrupt_thread(bool may_yield) {
    const Position position{block_, started(), switches_};
    const bool stuck = std::exchange(last_interruption_, position) == position;
    Fiber *fiber = resumed_ = current_;
    fiber->context.switch_to(scheduler_);
    if (stuck && may_yield)
        yield();
}

} // namespace tcuda
