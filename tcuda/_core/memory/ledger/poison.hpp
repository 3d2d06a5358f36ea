#pragma once

#include <atomic>

#include "driver/driver.hpp"
#include "memory/allocator/block.hpp"
#include "memory/ledger/announced_streams.hpp"
#include "memory/ledger/captures.hpp"
#include "memory/ledger/shutdown.hpp"
#include "memory/records/memory_observer.hpp"
#include "threads/lock.hpp"

namespace tcuda {

// Fills the memory of blocks that are handed out and of blocks whose free is complete, so that a program that reads
// such memory gets wrong numbers.
class Poison {
public:
    Poison(int device, Driver &driver, const Shutdown &shutdown, const std::atomic<MemoryObserver *> &observer,
           const Captures &captures, AnnouncedStreams &streams)
        : device_(device), driver_(driver), shutdown_(shutdown), observer_(observer), captures_(captures),
          streams_(streams) {}
    Poison(const Poison &) = delete;
    Poison &operator=(const Poison &) = delete;

    // The value of each byte; a number below 0 turns the fills off, as at first.
    void use(int value) { value_ = value; }

    bool is_on() const { return value_ >= 0; }

    // Fills the block on its own stream, if that is possible. A failure changes nothing, because a program must not
    // fail by a fill. May give the lock back.
    void fill(Lock &lock, const Block *block);

private:
    const int device_;
    Driver &driver_;
    const Shutdown &shutdown_;
    const std::atomic<MemoryObserver *> &observer_;
    const Captures &captures_;
    AnnouncedStreams &streams_;
    int value_ = -1;
};

} // namespace tcuda
