// The ledger of a device: every allocation goes through it, whichever source the memory comes from.
// Its functions are in five files: what allocates, frees and counts, what asks streams, what serves captures, what gives
// back, what shows.
//
// It counts, keeps the history, routes to pools, holds back what other streams still use, and reports a lack of memory.
//
// Lock rules
//   1. `mutex_` guards all state of a device. It is a leaf: no other lock of tcuda's is taken under it.
//   2. Under it nothing calls Python, nor a library of a user: external sources and the driver's streams and events are
//      called with the lock given back, and what they need is taken out of the state before.
//   3. No thread holds Python's lock while it waits for this one, nor while the driver's memory entries or a library of a
//      user are called: these may wait for a function of the host, in a stream, that needs Python's lock. Lock sees to
//      the first, Lock::leave_interpreter() to the second. Python's lock is taken again when `mutex_` is free.
//   4. So other threads of Python may run in the middle of a call, and anything that Python runs (a finalizer in a garbage
//      collection, a signal handler) may come back here from within a call.
//   5. A daemon thread stops for ever where it takes Python's lock, or runs Python code, when the interpreter has ended
//      (interpreter_calls.cpp). It holds no lock of the core then, but it keeps its pins.
//   6. Where the lock is given back in the middle, what is needed afterwards is pinned (heaps, pools, the handles of
//      streams) or has users (Work), so that it is there when the lock is taken again.
// Lifetime rules
//   1. A ledger that arrays use is never destroyed: they may die after everything else, and their frees must find it.
//      One that is gives back all its memory.
//   2. After abandon(), in a forked child, frees do nothing. After close(), at interpreter exit, they only count.
//   3. A block keeps its source alive, a pool its library; both outlive what replaced them.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "allocator/address_map.hpp"
#include "allocator/caching_allocator.hpp"
#include "allocator/external_source.hpp"
#include "allocator/settings.hpp"
#include "allocator/work.hpp"
#include "driver/driver.hpp"
#include "ledger/failures.hpp"
#include "ledger/segment_view.hpp"
#include "records/history.hpp"
#include "records/statistics.hpp"
#include "records/trackers.hpp"
#include "threads/lock.hpp"

namespace tcuda {

class DeviceLedger {
public:
    DeviceLedger(int device, Driver &driver, const Settings &settings);
    ~DeviceLedger();
    DeviceLedger(const DeviceLedger &) = delete;
    DeviceLedger &operator=(const DeviceLedger &) = delete;

    // Memory of at least `size` bytes from `source`, or from the caching allocator if that is null; 0 if `size` is 0.
    // `block_size`, if it is not null, is set to the size of the block, all of which belongs to the caller.
    // Throws OutOfMemory or DriverError, and then nothing has changed but the counts of failures.
    Address allocate(std::size_t size, Stream stream, const std::shared_ptr<ExternalSource> &source,
                     std::size_t *block_size = nullptr);

    // False, with nothing changed, if no live allocation begins at `address`.
    bool free(Address address) noexcept;

    // Keeps the allocation at `address`, once it is freed, until the work that is on `stream` by then is complete.
    bool record_stream(Address address, Stream stream);

    // The lives of streams. Only of a stream that was announced here is the handle used when nobody else uses it: a
    // destroyed stream crashes the driver. The default streams, and the stream of the caller, are there in any case.
    // The second waits for threads that are asking the driver about the stream, so it must not hold Python's lock.
    void stream_created(Stream stream);
    void stream_about_to_be_destroyed(Stream stream);

    void empty_cache();

    // Segments for sources that report theirs.
    Address allocate_segment(std::size_t size);
    void free_segment(Address address) noexcept;

    // Pools. One is there until nobody uses it and nothing of it is in use; then it gives its memory back.
    void create_pool(PoolId id, std::shared_ptr<ExternalSource> library, bool split, bool use_on_oom);
    void release_pool(PoolId id);
    int pool_uses(PoolId id);
    // Allocations of this thread go there until the end, of the use of this number if that is not 0. Any thread may end a
    // use that has a number; to end it twice, or before it has begun, does nothing.
    void begin_pool(PoolId id, std::uint64_t use = 0);
    void end_pool(PoolId id, std::uint64_t use = 0) noexcept;

    // Captures. Allocations on the streams of a capture go to a pool, which is made if there is none, and what this thread
    // frees of other memory stays as it is until the end, by when it is known what the graph reads. The graph uses the pool.
    void begin_capture(PoolId id, CaptureId capture);
    void end_capture(CaptureId capture) noexcept;
    bool has_capture(CaptureId capture);
    // Keeps every allocation that has one of these addresses, and is older than the capture, until the graph is released,
    // though it is freed. Returns where they begin.
    std::vector<Address> hold(const std::vector<Address> &addresses, CaptureId capture);
    // Lets go of what of `held` is on this device, and releases the pool; of a graph that may be running, when the device
    // has done what it has to do.
    void release_graph(PoolId id, const std::vector<Address> &held, bool replayed);

    void change_settings(const Settings &settings);

    // The share of the device's memory that may be reserved.
    void set_memory_fraction(double fraction);
    double memory_fraction();

    Statistics statistics();
    struct Bytes {
        Counter allocated_bytes, reserved_bytes;
    };
    Bytes bytes();
    void reset_peaks();
    void reset_accumulated();
    bool used() const { return used_.load(std::memory_order_relaxed); }

    // A tracker must live until it is detached. Whether it was attached.
    void attach(Tracker *tracker);
    bool detach(Tracker *tracker);
    Tracker read(const Tracker &tracker);

    void record_history(Stacks stacks, std::size_t capacity, std::uint32_t skipped, bool clear);
    void stop_history();
    void set_metadata(Metadata metadata);

    // The stack of the caller; 0 where the history does not want it. Asked without the lock, as noting calls Python.
    StackId stack(Stacks wanted) const;
    bool records_stacks() const { return history_.stacks() != Stacks::none; }

    // Notes in the history that the caller looks at this, after what the caller sees.
    std::vector<SegmentView> snapshot(const PoolId *pool);
    std::vector<Occurrence> events();

    // The bytes of the live allocation that begins at `address`, 0 if none does.
    std::size_t size_of(Address address);

    void abandon() { abandoned_.store(true, std::memory_order_relaxed); }
    void close() { closed_.store(true, std::memory_order_relaxed); }

    // Notes the Python stack of the caller; 0 where there is none. Called without the lock.
    static std::atomic<StackId (*)()> note_stack;

private:
    struct Route {
        Pool *pool;
        std::uintptr_t thread;
        CaptureId capture; // 0: all that the thread allocates; else what is allocated on the streams of the capture
        std::uint64_t use = 0; // the number of the use, if it has one
    };
    struct Capture {
        CaptureId id;
        std::uintptr_t thread;
        std::vector<Stream> streams; // that are known to take part, which they do until the end
        Block *kept = nullptr;       // what the thread has freed, linked by `right`
    };
    struct Announced {
        int pins = 0; // threads that use the handle, with the lock given back
        bool ending = false;
    };
    struct Candidate {
        Heap *heap;
        bool known;        // whether the stream may be asked, and waited for, by its handle
        bool ready = false; // nothing uses what is free in the heap any more
    };
    struct ReportedSegment {
        std::size_t size;
        StackId stack;
        bool unwanted = false; // the driver failed to take it back
    };
    struct Released {
        Address address;
        std::uint64_t number; // of the release
    };
    static constexpr std::size_t everything = std::numeric_limits<std::size_t>::max();
    enum class From { everywhere, destroyed_streams, unused_pools };

    Pool &open_pool(PoolId id, std::shared_ptr<ExternalSource> library, bool split, bool use_on_oom);
    CaptureId capture_of(Stream stream);
    Pool &route(CaptureId capture);
    Pool &pool(PoolId id);
    Block *take(Pool &pool, Stream stream, std::size_t size);
    Block *take_or_grow(Lock &lock, Pool &pool, Stream stream, std::size_t size, StackId stack);
    Block *from_source(Lock &lock, const std::shared_ptr<ExternalSource> &source, std::size_t size, Stream stream);
    Block *adopt(const std::shared_ptr<ExternalSource> &source, Address address, std::size_t size, Stream stream,
                 void *token);
    bool grow_from_library(Lock &lock, Pool &pool, Stream stream, std::size_t size, StackId stack);
    Block *take_from_spare_pools(Stream stream, std::size_t size);
    [[noreturn]] void fail(Lock &lock, std::size_t size, Stream stream, StackId stack);
    void count_allocation(Block *block, std::size_t requested, CaptureId capture, StackId stack);
    std::size_t limit(Lock &lock);
    std::size_t limit_of(std::size_t total) const;

    void finish_free(Lock &lock, Block *block);
    void complete_free(Lock &lock, Block *block);
    void keep_for_capture(Block *block) noexcept;
    void unhold(Lock &lock, Block *block);
    void let_go_of_released(Lock &lock);
    void hold_back(Lock &lock, Block *block);
    bool has_waits() const { return !arrivals_.empty() || !queues_.empty() || !spent_.empty(); }
    void settle(Lock &lock, bool wait);
    void advance(Lock &lock, Stream stream, bool wait);
    void destroy_spent(Lock &lock);

    bool pin(Stream stream);
    void unpin(Stream stream);
    bool can_wait_for(Stream stream);
    bool note(Lock &lock, Work &work, Stream stream);
    bool is_done(Lock &lock, Work &work, Stream stream, bool wait);
    bool is_idle(Lock &lock, Stream stream, bool wait);
    bool synchronize_device(Lock &lock, const Stream *current);
    template <typename Visit> void each_trace_of(Stream stream, Visit visit);
    template <typename Visit> void each_heap(Visit visit);

    void recycle(Lock &lock, std::size_t enough, bool wait, const Stream *current, From from = From::everywhere);
    std::vector<Candidate> candidates(const Stream *current, From from);
    void find_ready(Lock &lock, std::vector<Candidate> &heaps, bool wait, const Stream *current);
    void give_all_back(Lock &lock, const Stream *current);
    void collect_garbage(Lock &lock, std::size_t size, Stream stream);
    void merge_recent();
    void retry();
    void give_back(Address address) noexcept;
    void remove_unused(std::vector<std::unique_ptr<Pool>> &removed);
    void release_idle_pools(Lock &lock) noexcept;

    const int device_;
    Driver &driver_;
    Settings settings_;
    std::mutex mutex_;
    Statistics statistics_;
    History history_;
    CachingAllocator native_;
    Pool common_;
    std::map<PoolId, std::unique_ptr<Pool>> pools_;
    std::vector<Route> routes_;
    std::vector<Capture> captures_;
    std::atomic<bool> is_capturing_{false}; // whether there are any
    std::vector<Released> released_; // what graphs have let go of, which the device may still be working on
    std::uint64_t releases_ = 0;
    AddressMap<Block> live_;
    std::map<Address, ReportedSegment> reported_segments_;
    std::list<Wait> arrivals_;                  // not in their queue yet
    std::map<Stream, std::list<Wait>> queues_;  // by the streams that are waited for, in the order of their work
    std::list<Wait> spent_;                     // done; the event is to be destroyed
    std::map<Stream, Announced> announced_;
    std::condition_variable unpinned_;
    Trackers trackers_;
    std::vector<std::shared_ptr<ExternalSource>> sources_;
    double fraction_ = 1;
    std::size_t limit_ = 0; // 0: not asked yet
    std::uint64_t recycled_ = 0;
    bool has_idle_pools_ = false; // a pool without users may have become free
    std::atomic<bool> used_{false}, abandoned_{false}, closed_{false};
};

template <typename Visit> void DeviceLedger::each_heap(Visit visit) {
    for (const auto &heap : common_.heaps)
        visit(*heap);
    for (const auto &[id, pool] : pools_)
        for (const auto &heap : pool->heaps)
            visit(*heap);
}

} // namespace tcuda
