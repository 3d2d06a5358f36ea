#pragma once

#include <condition_variable>
#include <map>

#include "driver/driver.hpp"
#include "threads/lock.hpp"

namespace tcuda {

// The streams whose creation and destruction the ledger learns of. A destroyed stream crashes the driver, so only the
// handle of an announced stream is used after the call that named the stream. A thread pins the stream meanwhile.
// The lock of the device's ledger guards the streams.
class AnnouncedStreams {
public:
    void announce(Stream stream) { streams_.emplace(stream, Announced{}); }
    bool knows(Stream stream) const { return streams_.count(stream) != 0; }

    // Refuses further pins of the stream, and waits until no thread has pinned it. False, with nothing changed, if the
    // stream was not announced, or another thread has called this function for it.
    bool begin_end(Lock &lock, Stream stream);
    void forget(Stream stream) { streams_.erase(stream); }

    // Whether any stream is `wanted`. A call of `wanted` may give the lock back, so that streams may come and go.
    template <typename Wanted> bool any(Wanted wanted) {
        for (auto known = streams_.begin(); known != streams_.end();) {
            const Stream stream = known->first;
            if (wanted(stream))
                return true;
            known = streams_.upper_bound(stream);
        }
        return false;
    }

private:
    friend class PinnedStream;
    struct Announced {
        int pins = 0; // the number of threads that use the handle while the lock is given back
        bool ending = false;
    };

    bool pin(Stream stream);
    void unpin(Stream stream);

    std::map<Stream, Announced> streams_;
    std::condition_variable unpinned_;
};

// Keeps the handle of a stream usable while the lock is given back, unless the stream is about to be destroyed. A
// stream that was not announced needs no pin: the caller of the ledger has named it, and keeps it alive. Constructed
// and destroyed under the lock.
class PinnedStream {
public:
    PinnedStream(AnnouncedStreams &streams, Stream stream)
        : streams_(streams), stream_(stream), usable_(streams.pin(stream)) {}
    ~PinnedStream() {
        if (usable_)
            streams_.unpin(stream_);
    }
    PinnedStream(const PinnedStream &) = delete;
    PinnedStream &operator=(const PinnedStream &) = delete;

    bool is_usable() const { return usable_; }

private:
    AnnouncedStreams &streams_;
    const Stream stream_;
    const bool usable_;
};

} // namespace tcuda
