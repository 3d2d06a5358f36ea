// The ledger of a device: every allocation on the device goes through it, whichever source the memory comes from.
// DESIGN.md has the rules for locks and lifetimes.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "driver/capture_gate.hpp"
#include "driver/driver.hpp"
#include "memory/allocator/block_store.hpp"
#include "memory/allocator/caching_allocator.hpp"
#include "memory/allocator/external_source.hpp"
#include "memory/allocator/settings.hpp"
#include "memory/allocator/stream_lives.hpp"
#include "memory/ledger/announced_streams.hpp"
#include "memory/ledger/block_returns.hpp"
#include "memory/ledger/block_search.hpp"
#include "memory/ledger/captures.hpp"
#include "memory/ledger/checkpoint.hpp"
#include "memory/ledger/external_memory.hpp"
#include "memory/ledger/failures.hpp"
#include "memory/ledger/graph_holds.hpp"
#include "memory/ledger/imported_memory.hpp"
#include "memory/ledger/live_blocks.hpp"
#include "memory/ledger/memory_limit.hpp"
#include "memory/ledger/poison.hpp"
#include "memory/ledger/pool_routes.hpp"
#include "memory/ledger/pools.hpp"
#include "memory/ledger/reclaimer.hpp"
#include "memory/ledger/relief.hpp"
#include "memory/ledger/reported_segments.hpp"
#include "memory/ledger/segment_view.hpp"
#include "memory/ledger/sharing.hpp"
#include "memory/ledger/shutdown.hpp"
#include "memory/ledger/sleeper.hpp"
#include "memory/ledger/stream_progress.hpp"
#include "memory/ledger/stream_waits.hpp"
#include "memory/records/history.hpp"
#include "memory/records/memory_observer.hpp"
#include "memory/records/scope_counters.hpp"
#include "memory/records/statistics.hpp"
#include "memory/records/trackers.hpp"
#include "threads/lock.hpp"

namespace tcuda {

class DeviceLedger {
public:
    DeviceLedger(int device, Driver &driver, const Settings &settings, CaptureGate &gate);
    ~DeviceLedger();
    DeviceLedger(const DeviceLedger &) = delete;
    DeviceLedger &operator=(const DeviceLedger &) = delete;

    // Memory of at least `size` bytes from `source`, or from the caching allocator if `source` is null; 0 if `size` is
    // 0. `block_size`, unless it is null, becomes the size of the block, all of which belongs to the caller. Throws
    // OutOfMemory, DriverError or DuplicatePointer; then only the counts of failures have changed. If there is no room,
    // also after the cache was given back, asks `relief` whether to try again.
    Address allocate(std::size_t size, Stream stream, const std::shared_ptr<ExternalSource> &source,
                     std::size_t *block_size = nullptr, Relief *relief = nullptr);

    // False, with nothing changed, if no allocation begins at `address`.
    bool free(Address address) noexcept;

    // The bytes of the allocation that begins at `address`, 0 if none does.
    std::size_t size_of(Address address);

    // The handle of the stream for which the allocation that begins at `address` was made. Nothing if no allocation
    // begins there, if the stream is destroyed, or if the handle means another stream in this thread.
    std::optional<Stream> stream_of(Address address);

    // The number of the Python stack of the allocation that begins at `address`, 0 if none is noted.
    StackId stack_of(Address address);

    // Whether the program may keep the contents of the allocation that begins at `address` elsewhere. False if none
    // begins there, if a graph or a capture needs the address, and for memory of a private pool.
    bool can_move(Address address);

    // The block that contains `address`, whether the block is allocated or free.
    std::optional<FoundBlock> block_at(Address address);

    // Streams

    // Once the allocation at `address` is freed, keeps its memory until the work that is on `stream` at the time of the
    // free is complete. False, with nothing changed, if no allocation begins at `address`.
    bool record_stream(Address address, Stream stream);

    // The begin and the end of a stream's life: AnnouncedStreams says why the ledger needs them. The second function
    // waits for threads that ask the driver about the stream, so it is called without Python's lock.
    void stream_created(Stream stream);
    void stream_about_to_be_destroyed(Stream stream);

    // Whether a stream of the device captures, as far as the ledger knows the streams.
    bool is_capturing();
    // Waits for all work of the device, unless a stream captures or the ledger has never used the device.
    void wait_for_work();

    // Captures. All allocations on the streams of a capture go to a pool, which is made if there is none. Other memory
    // that this thread frees keeps its contents until the capture ends, because the graph may read it. The graph is a
    // user of the pool until release_graph().
    // Called before a stream begins to capture: looks whether the memory of released graphs may go to the capture.
    void prepare_capture();
    void begin_capture(PoolId id, CaptureId capture);
    void end_capture(CaptureId capture) noexcept;
    bool has_capture(CaptureId capture);
    // The body of a conditional node, which is a part of a capture with a number of its own.
    void begin_part(CaptureId capture, CaptureId part);
    void end_part(CaptureId part) noexcept;
    // Keeps the allocations that have one of these addresses until release_holds() or release_graph(), even if they are
    // freed before. Leaves out the allocations that were made in the capture. Returns where the allocations begin.
    std::vector<Address> hold(const std::vector<Address> &addresses, CaptureId capture);
    // Lets go of those `held` addresses that are on this device. The memory goes back once the device has done the
    // replays. Waits for nothing.
    void release_holds(const std::vector<Address> &held, bool replayed);
    // The same, and lets go of the pool.
    void release_graph(PoolId id, const std::vector<Address> &held, bool replayed);

    // Pools. A pool exists until it has no users and none of its memory is in use; then its memory is given back.
    void create_pool(PoolId id, std::shared_ptr<ExternalSource> library, bool split, bool use_on_oom);
    void release_pool(PoolId id);
    int pool_uses(PoolId id);
    // The allocations of this thread go to the pool from begin_pool() to end_pool(). Any thread may end a use that has
    // a number. A call that ends no use does nothing.
    void begin_pool(PoolId id, std::uint64_t use = 0);
    void end_pool(PoolId id, std::uint64_t use = 0) noexcept;

    // See Sleeper.
    Sleeper::Refusal sleep(PoolId id, bool keep, const std::vector<Address> &shared);
    bool wake(PoolId id, Sleeper::Lack *lack, Sleeper::Refusal *refusal);
    bool is_asleep(PoolId id);
    std::optional<PoolId> sleeping_pool(Address address);

    // Memory in several processes

    // How other processes can open the allocation that begins at `address`; nothing if none begins there. Throws
    // DriverError.
    std::optional<Sharing> sharing_of(Address address);

    // A new descriptor of the piece of physical memory that begins at `address`, which is the caller's. The piece must
    // contain a part of an allocation that the caller keeps. Throws DriverError.
    int export_piece(Address address);

    // Maps pieces of another process side by side, and returns the address. Throws DriverError.
    Address import_pieces(const std::vector<ImportedMemory::Piece> &pieces);

    // Unmaps what import_pieces() has mapped at `address`. False, with nothing changed, if there is none.
    bool release_imported(Address address);

    // Reserved memory

    void empty_cache(bool keep_spare = false); // whether the spare pool is kept for the next capture

    // Segments for external sources that report their segments. 0 if there is no memory.
    Address allocate_segment(std::size_t size);
    void free_segment(Address address) noexcept;

    void change_settings(const Settings &settings);

    // The share of the device's memory that may be reserved.
    void set_memory_fraction(double fraction);
    // The number of bytes, a multiple of 512, that each block of the caching allocator has behind its allocation.
    void set_padding(std::size_t padding);
    double memory_fraction();
    // Fills memory with this byte when it is handed out and when it is freed; a number below 0 fills no memory.
    void set_poison(int value);

    // Statistics

    Statistics statistics();
    struct Bytes {
        Counter allocated_bytes, reserved_bytes;
    };
    Bytes bytes();
    // The bytes of each name of scopes, by its number.
    std::vector<Counter> scope_bytes();
    // The reserved bytes of each private pool that has or had memory, by its number.
    std::map<PoolId, PooledCounter> pool_bytes();
    void reset_peaks();
    void reset_accumulated();
    bool used() const { return live_.ever_used(); }

    // A tracker must live until it is detached. detach() returns whether the tracker was attached.
    void attach(Tracker *tracker);
    bool detach(Tracker *tracker);
    Tracker read(const Tracker &tracker);

    // Tells `observer` of the live allocations, and of what happens to memory from now on. Null ends that. After the
    // call, the observer before is not called any more.
    void observe(MemoryObserver *observer);
    bool is_observed() const { return observer_.load(std::memory_order_relaxed) != nullptr; }

    // History and snapshots

    void record_history(Stacks stacks, std::size_t capacity, std::uint32_t skipped, bool clear);
    void stop_history();
    // Notes the stacks of allocations also while the history does not want them.
    void keep_stacks(bool wanted);
    void set_metadata(Metadata metadata);

    // The Python stack of the caller; 0 if the history does not want it. Called without the lock, because it calls
    // Python.
    StackId stack(Stacks wanted) const;
    bool records_stacks() const { return history_.stacks() != Stacks::none; }

    std::vector<Occurrence> events();

    // The bytes that came from the driver, and the bytes that went back, since the last call.
    SegmentChanges::Bytes take_segment_changes();

    // The segments of a pool, or of all pools if `pool` is null. The history records the snapshot.
    std::vector<SegmentView> snapshot(const PoolId *pool);

    // The end of the process

    void abandon() { shutdown_.abandon(); }
    void close() { shutdown_.close(); }

private:
    StackId caller_stack(StackId noted) const;
    void check_awake(const Pool &pool) const;
    Block *take(Pool &pool, Stream stream, std::size_t size);
    Block *take_or_grow(Lock &lock, Pool &pool, Stream stream, std::size_t size, StackId stack);
    Block *take_apart(Lock &lock, Pool &pool, Stream stream, std::size_t size);
    Block *grow_and_take(Lock &lock, Pool &pool, Stream stream, std::size_t size, StackId stack);
    Block *take_from_source(Lock &lock, const std::shared_ptr<ExternalSource> &source, std::size_t size, Stream stream);
    void give_back_everything(Lock &lock, const Stream *current, bool keep_spare = false);
    [[noreturn]] void fail(Lock &lock, std::size_t size, Stream stream, StackId stack, const Scope *scope);
    OutOfMemory lack(std::size_t size, Stream stream, bool rejected);
    CaptureId capture_of(Stream stream);
    void settle(Lock &lock, bool wait);
    void note_replays(Pool &pool);
    void release_own(Lock &lock, std::list<GraphHolds::Hold> &own, bool replayed);
    void settle_replays(Lock &lock);

    // Each component has state of its own, all of it guarded by `mutex_`. A component takes no lock itself: it gets the
    // Lock of its caller if it may give the lock back.
    const int device_;
    Driver &driver_;
    Settings settings_;
    std::mutex mutex_;
    Shutdown shutdown_;
    Statistics statistics_;
    ScopeCounters scopes_;
    History history_;
    Trackers trackers_;
    std::atomic<MemoryObserver *> observer_{nullptr};
    LiveBlocks live_{settings_, statistics_, scopes_, history_, trackers_};
    StreamLives lives_; // declared before the blocks, whose waits have ties
    BlockStore blocks_;
    CachingAllocator native_{device_, driver_, settings_, lives_, blocks_, statistics_, history_};
    Pools pools_{native_};
    PoolRoutes routes_;
    MemoryLimit limit_{device_, driver_};
    ReportedSegments reported_{device_, driver_, limit_, statistics_, history_};
    ExternalMemory external_{device_, driver_, shutdown_, lives_,      blocks_,
                             native_, live_,   limit_,    statistics_, history_};
    BlockSearch search_{native_, external_, live_};
    ImportedMemory imported_{device_, driver_};
    AnnouncedStreams streams_;
    Captures captures_;
    Poison poison_{device_, driver_, shutdown_, observer_, captures_, streams_};
    BlockReturns returns_{poison_, live_, pools_, external_};
    StreamProgress progress_{device_, driver_, streams_};
    Checkpoint checkpoint_;
    StreamWaits waits_{shutdown_, lives_, progress_, returns_};
    GraphHolds holds_{device_, observer_, live_, waits_, checkpoint_};
    Reclaimer reclaimer_{settings_, shutdown_, native_,   pools_,      external_,  reported_,
                         limit_,    streams_,  progress_, checkpoint_, statistics_};
    Sleeper sleeper_{device_, driver_, shutdown_, native_,   pools_,     external_,
                     live_,   limit_,  captures_, progress_, reclaimer_, statistics_};
};

} // namespace tcuda
