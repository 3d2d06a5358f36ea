#include "memory/ledger/stream_progress.hpp"

#include <utility>

namespace tcuda {

// Called without the lock.
bool StreamProgress::can_wait_for(Stream stream) {
    CaptureId capture = 0;
    return driver_.capture_of(device_, stream, &capture) != success || capture == 0;
}

bool StreamProgress::record(Lock &lock, Work &work, Stream stream) {
    if (work.event != 0 || work.users != 0)
        return work.event != 0;
    const PinnedStream pinned(streams_, stream);
    if (!pinned.is_usable())
        return false;
    ++work.users;
    Event event = 0;
    bool can_wait;
    {
        const Unlocked unlocked(lock);
        can_wait = can_wait_for(stream);
        if (!can_wait || driver_.record(device_, stream, &event) != success)
            event = 0;
    }
    work.event = event;
    --work.users;
    return can_wait;
}

Event StreamProgress::record_last(Lock &lock, Stream stream) {
    const Unlocked unlocked(lock);
    Event event = 0;
    return can_wait_for(stream) && driver_.record(device_, stream, &event) == success ? event : 0;
}

bool StreamProgress::is_done(Lock &lock, Work &work, Stream stream, bool wait) {
    if (!work.done && !work.gone && !record(lock, work, stream))
        return false;
    if (work.done)
        return true;
    bool done;
    if (const Event event = work.event) {
        ++work.users;
        {
            const Unlocked unlocked(lock);
            done = (wait ? driver_.synchronize(device_, event) : driver_.query(device_, event)) == success;
        }
        --work.users;
    } else { // without an event, only the whole device can be waited for
        done = wait && synchronize_device(lock, nullptr);
    }
    work.done = work.done || done;
    return work.done;
}

bool StreamProgress::is_idle(Lock &lock, Stream stream, bool wait) {
    const PinnedStream pinned(streams_, stream);
    if (!pinned.is_usable())
        return false;
    const Unlocked unlocked(lock);
    return can_wait_for(stream) &&
           (wait ? driver_.synchronize_stream(device_, stream) : driver_.query_stream(device_, stream)) == success;
}

bool StreamProgress::is_capturing(Lock &lock) {
    const bool capturing = streams_.any([&](Stream stream) {
        const PinnedStream pinned(streams_, stream);
        if (!pinned.is_usable()) // the capture of a stream that is about to be destroyed is lost anyway
            return false;
        const Unlocked unlocked(lock);
        return !can_wait_for(stream);
    });
    if (capturing)
        return true;
    const Unlocked unlocked(lock);
    return !can_wait_for(0);
}

bool StreamProgress::synchronize_device(Lock &lock, const Stream *current) {
    if (is_capturing(lock))
        return false;
    const Unlocked unlocked(lock);
    return (current == nullptr || can_wait_for(*current)) && driver_.synchronize_device(device_) == success;
}

bool StreamProgress::record_device(Lock &lock, Event *event) {
    if (is_capturing(lock))
        return false;
    lock.leave_interpreter(); // an older driver waits for the device
    const Unlocked unlocked(lock);
    return driver_.record_device(device_, event) == success;
}

bool StreamProgress::destroy_event(Lock &lock, Work &work) {
    const Event event = std::exchange(work.event, 0); // several waits may share the work
    if (event == 0)
        return true;
    int status;
    {
        const Unlocked unlocked(lock);
        status = driver_.destroy_event(device_, event);
    }
    if (status != success)
        work.event = event;
    return status == success;
}

void StreamProgress::destroy_last_event(Work &work) {
    if (work.event != 0)
        driver_.destroy_event(device_, work.event);
    work.event = 0;
}

} // namespace tcuda
