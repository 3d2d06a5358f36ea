// Points in the work of a stream, and the blocks that wait for them.
#pragma once

#include <memory>
#include <utility>

#include "driver/driver.hpp"
#include "memory/allocator/stream_lives.hpp"

namespace tcuda {

struct Block;

// The work that a stream has to do up to some point. The lock of the device's ledger guards it. A thread that gives the
// lock back, to ask the driver about the event or to record it, counts as a user. The event is destroyed, or replaced,
// only while there are no users.
struct Work {
    Event event = 0;   // 0 before the event is recorded, and after it is destroyed
    bool done = false; // the stream has done the work
    bool gone = false; // the stream is destroyed, and its handle must not be used
    int users = 0;
};

// A freed block that waits for the work of a stream. Without a block, only the event of the work is to be destroyed.
struct Wait {
    Wait(Stream stream, Block *block, std::shared_ptr<Work> work, StreamTie tie = {})
        : stream(stream), block(block), work(std::move(work)), tie(std::move(tie)) {}

    const Stream stream;
    Block *const block; // may be null
    std::shared_ptr<Work> work;
    StreamTie tie; // until the work has an event

    // Whether the stream is destroyed.
    bool is_gone() const { return work->gone || tie.is_gone(); }

    // The work to wait for. If the stream was destroyed before the work had an event, this is its last work.
    const std::shared_ptr<Work> &awaited() {
        if (tie.is_gone() && work->event == 0 && work->users == 0 && !work->done) {
            work = tie.last_work();
            tie.end();
        }
        return work;
    }
};

} // namespace tcuda
