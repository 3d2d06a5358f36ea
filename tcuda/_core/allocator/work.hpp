// Points in the work of a stream, and what waits until the stream has come so far.
#pragma once

#include <memory>

#include "driver/driver.hpp"

namespace tcuda {

struct Block;

// Lock rule: guarded by the lock of the device's ledger. Whoever gives that back to ask the driver about the event, or
// to record it, counts as a user: the event is destroyed, and replaced, only while there are none.
struct Work {
    Event event = 0;   // 0 as long as it could not be recorded, and when it is destroyed
    bool done = false; // the stream has come so far
    bool gone = false; // the stream is destroyed: its handle must not be used
    int users = 0;
};

struct Wait {
    Stream stream;
    Block *block; // which is freed then; null where only the event is to be destroyed
    std::shared_ptr<Work> work;
};

} // namespace tcuda
