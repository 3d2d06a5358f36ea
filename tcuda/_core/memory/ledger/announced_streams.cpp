#include "memory/ledger/announced_streams.hpp"

namespace tcuda {
namespace {

// The number of pins that this thread has, on the streams of all devices.
thread_local int pins_of_this_thread = 0;

} // namespace

bool AnnouncedStreams::pin(Stream stream) {
    const auto known = streams_.find(stream);
    if (known != streams_.end()) {
        if (known->second.ending)
            return false;
        ++known->second.pins;
    }
    ++pins_of_this_thread;
    return true;
}

void AnnouncedStreams::unpin(Stream stream) {
    --pins_of_this_thread;
    const auto known = streams_.find(stream);
    if (known != streams_.end() && known->second.pins > 0 && --known->second.pins == 0)
        unpinned_.notify_all();
}

bool AnnouncedStreams::begin_end(Lock &lock, Stream stream) {
    const auto known = streams_.find(stream);
    if (stream == 0 || known == streams_.end() || known->second.ending)
        return false;
    known->second.ending = true;
    // A thread with pins is in a call of the driver, and this call comes from a finalizer within that call: the thread
    // must not wait for itself.
    if (pins_of_this_thread == 0)
        unpinned_.wait(lock.held(), [&] { return known->second.pins == 0; });
    return true;
}

} // namespace tcuda
