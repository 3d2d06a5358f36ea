#include "ledger/stream_traces.hpp"

namespace tcuda {

bool StreamTraces::has_any(Stream stream) {
    bool found = false;
    each_wait(stream, [&](Wait &) { found = true; });
    each_block(stream, [&](Block &) { found = true; });
    each_heap(stream, [&](Heap &) { found = true; });
    return found;
}

void StreamTraces::replace(Stream stream, const std::shared_ptr<Work> &end) {
    each_wait(stream, [&](Wait &wait) { wait.work = end; });
    each_block(stream, [&](Block &block) { block.stream_is_gone = true; });
    each_heap(stream, [&](Heap &heap) { native_.orphan(heap, end); });
}

// The waits of freed blocks, and the uses of live blocks, that have no event yet.
template <typename Visit> void StreamTraces::each_wait(Stream stream, Visit visit) {
    waits_.each_unrecorded(stream, visit);
    live_.each([&](Block *block) { StreamWaits::each_unrecorded_use(block, stream, visit); });
}

// The live blocks that were allocated on the stream.
template <typename Visit> void StreamTraces::each_block(Stream stream, Visit visit) {
    live_.each([&](Block *block) {
        if (block->stream == stream && !block->stream_is_gone)
            visit(*block);
    });
}

template <typename Visit> void StreamTraces::each_heap(Stream stream, Visit visit) {
    pools_.each_heap([&](Heap &heap) {
        if (heap.stream == stream && heap.end == nullptr)
            visit(heap);
    });
}

} // namespace tcuda
