#pragma once

#include <cstdint>

#include "driver/capture_gate.hpp"
#include "driver/driver.hpp"
#include "memory/allocator/caching_allocator.hpp"
#include "memory/ledger/shutdown.hpp"
#include "memory/ledger/stream_progress.hpp"
#include "threads/lock.hpp"

namespace tcuda {

// A point behind all work that a device was given before a request. Replays use streams that the ledger does not know,
// and may not name: the streams may be destroyed. So only an event behind all work shows that replays are done.
//
// There is one event at a time: requests that arrive before the event is complete share the next event. A capture
// forbids the record of the event, and the requests then stay until a later call of advance().
class Checkpoint {
public:
    Checkpoint(int device, Driver &driver, const Shutdown &shutdown, const CachingAllocator &native,
               StreamProgress &progress, CaptureGate &gate)
        : device_(device), driver_(driver), shutdown_(shutdown), native_(native), progress_(progress), gate_(gate) {}
    Checkpoint(const Checkpoint &) = delete;
    Checkpoint &operator=(const Checkpoint &) = delete;

    // Asks for a point behind all work that the device was given so far. Returns the number of the request.
    std::uint64_t request() { return ++requested_; }
    bool has_passed(std::uint64_t request) const { return request <= passed_.request; }
    // The work that uses memory which was freed up to this count of frees is done, except later replays.
    std::uint64_t settled() const { return passed_.frees; }

    // Whether there is an event to ask about.
    bool is_recorded() const { return recorded_.request > passed_.request; }

    // Looks whether the device has come to the requested points. Waits for nothing. Returns whether has_passed() has
    // changed. May give the lock back.
    bool advance(Lock &lock);
    // The same, and waits for the requested points.
    bool wait(Lock &lock);

    // Destroys the event: without the lock, and once only.
    void destroy_event();

private:
    struct Point {
        std::uint64_t request = 0;
        std::uint64_t frees = 0;
    };

    Point requested_point() const { return {requested_, native_.frees()}; }
    bool look(Lock &lock, bool wait);
    bool record(Lock &lock);
    bool pass(const Point &point);

    const int device_;
    Driver &driver_;
    const Shutdown &shutdown_;
    const CachingAllocator &native_;
    StreamProgress &progress_;
    CaptureGate &gate_;
    std::uint64_t requested_ = 0;
    Point recorded_, passed_;
    Event event_ = 0;
    bool busy_ = false; // a thread uses the event
};

} // namespace tcuda
