#pragma once

#include "driver/driver.hpp"
#include "memory/allocator/work.hpp"
#include "memory/ledger/announced_streams.hpp"
#include "threads/lock.hpp"

namespace tcuda {

// Asks the driver how far the streams of a device have come, and waits for them. Every function gives the lock back
// while it calls the driver. A stream that captures is neither asked nor waited for: that would end the capture.
class StreamProgress {
public:
    StreamProgress(int device, Driver &driver, AnnouncedStreams &streams)
        : device_(device), driver_(driver), streams_(streams) {}
    StreamProgress(const StreamProgress &) = delete;
    StreamProgress &operator=(const StreamProgress &) = delete;

    // Records an event behind the work that the stream has by now, unless the work has an event. False if that is not
    // possible yet, because the stream captures or another thread is recording the event. After true the work may still
    // have no event, because the driver has refused to record one.
    bool record(Lock &lock, Work &work, Stream stream);

    // An event behind the last work of a stream that is about to be destroyed; 0 if the driver records none.
    Event record_last(Lock &lock, Stream stream);

    // Whether the stream has done the work. Waits for the work if `wait`.
    bool is_done(Lock &lock, Work &work, Stream stream, bool wait);

    // Whether the stream has nothing to do. Waits for that if `wait`. False if the stream is about to be destroyed.
    bool is_idle(Lock &lock, Stream stream, bool wait);

    // Whether an announced stream or the default stream captures.
    bool is_capturing(Lock &lock);

    // Waits for all work of the device. False if the driver failed, or a stream captures. `current` is the stream of
    // the caller, or null.
    bool synchronize_device(Lock &lock, const Stream *current);
    // Records an event behind all work of the device, as Driver::record_device() does. False under the same conditions.
    bool record_device(Lock &lock, Event *event);

    // Destroys the event of the work, unless the work has none. False if the driver failed, and the event is still
    // there.
    bool destroy_event(Lock &lock, Work &work);
    // The same for a ledger that ends: without the lock, and once only.
    void destroy_last_event(Work &work);

private:
    bool can_wait_for(Stream stream);

    const int device_;
    Driver &driver_;
    AnnouncedStreams &streams_;
};

} // namespace tcuda
