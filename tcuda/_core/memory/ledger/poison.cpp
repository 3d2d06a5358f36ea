#include "memory/ledger/poison.hpp"

#include "memory/allocator/heap.hpp"
#include "memory/allocator/pool.hpp"

namespace tcuda {

// There is no fill during a capture, because the graph would repeat it, and none in the pool of a graph, whose replays
// use the memory also after the arrays of the capture are gone. A race detector would take the fill for work of the
// program.
void Poison::fill(Lock &lock, const Block *block) {
    if (block->pool != nullptr && block->pool->rest != Pool::Rest::awake)
        return;
    const bool of_graph = block->capture != 0 || (block->pool != nullptr && block->pool->captured);
    if (of_graph || captures_.any() || stream_is_gone(block) || shutdown_.is_closed() ||
        observer_.load(std::memory_order_relaxed) != nullptr)
        return;
    const Stream stream = block->stream;
    const PinnedStream pinned(streams_, stream);
    if (!pinned.is_usable())
        return;
    const Unlocked unlocked(lock);
    CaptureId capture = 0; // of another library
    if (driver_.capture_of(device_, stream, &capture) == success && capture == 0)
        driver_.fill(device_, stream, block->address, block->size, static_cast<unsigned char>(value_));
}

} // namespace tcuda
