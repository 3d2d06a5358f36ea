#pragma once

#include <atomic>
#include <cstdint>
#include <vector>

#include "allocator/block.hpp"
#include "driver/driver.hpp"

namespace tcuda {

// The captures in progress, on the streams of all devices, as the ledger of one device knows them. The blocks that the
// capturing thread frees are kept until the capture ends: only then is it known which of them the graph reads.
class Captures {
public:
    // Whether any capture is in progress. May be called without the lock.
    bool any() const { return any_.load(std::memory_order_relaxed); }
    bool has(CaptureId capture) const;

    // The capture that a stream is known to take part in; 0 if none is known.
    CaptureId known_of(Stream stream) const;
    // Notes that a stream takes part in a capture until the capture ends.
    void add_stream(CaptureId capture, Stream stream);

    // Makes room, so that the next begin() cannot throw.
    void reserve_one() { captures_.reserve(captures_.size() + 1); }
    // Notes that this thread captures from now on.
    void begin(CaptureId capture);
    // False if there is no such capture. `kept` becomes the first of the kept blocks, which are linked by `right`.
    bool end(CaptureId capture, Block **kept) noexcept;

    // Holds a block that this thread frees, if the thread captures, unless the block was allocated in the capture.
    void keep(Block *block) noexcept;

private:
    struct Capture {
        CaptureId id;
        std::uintptr_t thread;
        std::vector<Stream> streams; // that are known to take part
        Block *kept;
    };

    std::vector<Capture> captures_;
    std::atomic<bool> any_{false};
};

} // namespace tcuda
