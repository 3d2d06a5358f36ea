#include "memory/ledger/checkpoint.hpp"

namespace tcuda {

bool Checkpoint::advance(Lock &lock) {
    if (busy_ || shutdown_.is_closed() || shutdown_.is_abandoned())
        return false;
    busy_ = true;
    bool passed = is_recorded() && look(lock, false);
    while (!is_recorded() && !has_passed(requested_) && record(lock))
        passed = look(lock, false) || passed;
    busy_ = false;
    return passed;
}

bool Checkpoint::wait(Lock &lock) {
    if (has_passed(requested_) || shutdown_.is_closed() || shutdown_.is_abandoned())
        return false;
    const Point point = requested_point();
    if (progress_.synchronize_device(lock, nullptr))
        return pass(point);
    if (busy_ || !is_recorded()) // a capture forbids to wait for the device, and not to wait for an earlier event
        return false;
    busy_ = true;
    const bool passed = look(lock, true);
    busy_ = false;
    return passed;
}

// Asks about the event, or waits for the event.
bool Checkpoint::look(Lock &lock, bool wait) {
    const Point point = recorded_;
    bool done = event_ == 0; // the device had nothing to do
    if (!done) {
        const Unlocked unlocked(lock);
        done = (wait ? driver_.synchronize(device_, event_) : driver_.query(device_, event_)) == success;
    }
    return done && pass(point);
}

bool Checkpoint::record(Lock &lock) {
    if (!gate_.begin_record())
        return false;
    const Point point = requested_point();
    const bool recorded = progress_.record_device(lock, &event_);
    gate_.end_record();
    if (recorded)
        recorded_ = point;
    return recorded;
}

// Notes that the device has come to the point. Returns whether that is news.
bool Checkpoint::pass(const Point &point) {
    if (point.request <= passed_.request)
        return false;
    passed_ = point;
    return true;
}

void Checkpoint::destroy_event() {
    if (event_ != 0)
        driver_.destroy_event(device_, event_);
    event_ = 0;
}

} // namespace tcuda
