// Points in the work of a stream, and the blocks that wait for them.
#pragma once

#include <memory>

#include "driver/driver.hpp"

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
    Stream stream;
    Block *block; // may be null
    std::shared_ptr<Work> work;
};

} // namespace tcuda
