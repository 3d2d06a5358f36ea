#pragma once

#include <list>
#include <map>
#include <memory>

#include "driver/driver.hpp"
#include "memory/allocator/block.hpp"
#include "memory/allocator/stream_lives.hpp"
#include "memory/allocator/work.hpp"
#include "memory/ledger/block_returns.hpp"
#include "memory/ledger/shutdown.hpp"
#include "memory/ledger/stream_progress.hpp"
#include "threads/lock.hpp"

namespace tcuda {

// The waits of freed blocks for the streams that use them.
class StreamWaits {
public:
    StreamWaits(const Shutdown &shutdown, StreamLives &lives, StreamProgress &progress, BlockReturns &returns)
        : shutdown_(shutdown), lives_(lives), progress_(progress), returns_(returns) {}
    StreamWaits(const StreamWaits &) = delete;
    StreamWaits &operator=(const StreamWaits &) = delete;

    // Notes that a stream uses a live block.
    void record_use(Block *block, Stream stream);

    // Frees a block as soon as no stream uses it any more, which may be now. May give the lock back.
    void free(Lock &lock, Block *block) {
        if (block->uses != nullptr && !shutdown_.is_closed())
            hold_back(lock, block);
        else
            returns_.complete(lock, block);
    }

    bool empty() const { return arrivals_.empty() && queues_.empty() && spent_.empty(); }

    // Completes the frees whose streams are done. Waits for all the streams if `wait`. May give the lock back.
    void settle(Lock &lock, bool wait);

    // Adds a list of waits. No host memory is needed.
    void add(std::list<Wait> &waits) { arrivals_.splice(arrivals_.end(), waits); }

    // Destroys all events. Called when the ledger ends.
    void destroy_events();

private:
    void hold_back(Lock &lock, Block *block);
    void advance(Lock &lock, Stream stream, bool wait);
    void destroy_spent(Lock &lock);

    const Shutdown &shutdown_;
    StreamLives &lives_;
    StreamProgress &progress_;
    BlockReturns &returns_;
    std::list<Wait> arrivals_;                 // not in a queue yet
    std::map<Stream, std::list<Wait>> queues_; // by stream, in the order of the stream's work
    std::list<Wait> spent_;                    // the work is done, and its event is to be destroyed
};

} // namespace tcuda
