#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <vector>

#include "driver/driver.hpp"
#include "memory/allocator/block.hpp"

namespace tcuda {

// The captures in progress, on the streams of all devices, as the ledger of one device knows them. The blocks that the
// capturing thread frees are kept until the capture ends: only then is it known which of them the graph reads.
//
// The body of a conditional node is captured apart, and the driver gives that capture a number of its own. Here, such a
// capture is a part of the capture of the graph.
class Captures {
public:
    // Whether any capture is in progress. May be called without the lock.
    bool any() const { return any_.load(std::memory_order_relaxed); }
    bool has(CaptureId capture) const; // true for a part, too
    // The capture that `capture` is a part of; `capture` itself if it is no part.
    CaptureId whole_of(CaptureId capture) const;

    // The capture that a stream is known to take part in; 0 if none is known.
    CaptureId known_of(Stream stream) const;
    // Notes that a stream takes part in a capture, or in a part of one, until that ends.
    void add_stream(CaptureId capture, Stream stream);

    // Makes room, so that the next begin() cannot throw.
    void reserve_one() { captures_.reserve(captures_.size() + 1); }
    // Notes that this thread captures from now on.
    void begin(CaptureId capture);
    // False if there is no such capture. `kept` becomes the first of the kept blocks, which are linked by `right`.
    bool end(CaptureId capture, Block **kept) noexcept;

    // Notes that the driver's capture `part` belongs to `capture` until end_part() or the end of `capture`.
    void begin_part(CaptureId capture, CaptureId part);
    void end_part(CaptureId part) noexcept;

    // Holds a block that this thread frees, if the thread captures, unless the block was allocated in the capture.
    void keep(Block *block) noexcept;

private:
    struct Member {
        Stream stream;
        CaptureId part; // the number of the capture by the driver
    };
    struct Capture {
        CaptureId id;
        std::uintptr_t thread;
        std::vector<Member> streams; // that are known to take part
        Block *kept;
        std::vector<CaptureId> parts;
    };

    static bool is_part(const Capture &capture, CaptureId id) {
        return std::find(capture.parts.begin(), capture.parts.end(), id) != capture.parts.end();
    }

    std::vector<Capture> captures_;
    std::atomic<bool> any_{false};
};

} // namespace tcuda
