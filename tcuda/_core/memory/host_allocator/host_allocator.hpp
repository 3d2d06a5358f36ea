// The caching allocator of page-locked host memory, which all devices share.
#pragma once

#include <atomic>
#include <cstddef>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "driver/driver.hpp"
#include "memory/host_allocator/host_block.hpp"
#include "memory/host_allocator/host_heap.hpp"
#include "memory/host_allocator/host_limit.hpp"
#include "memory/host_allocator/host_settings.hpp"
#include "memory/host_allocator/host_statistics.hpp"
#include "memory/host_allocator/host_views.hpp"
#include "memory/host_allocator/host_waits.hpp"
#include "memory/host_allocator/question_rate.hpp"
#include "memory/host_allocator/settling_thread.hpp"
#include "memory/records/caller_stack.hpp"
#include "memory/records/history.hpp"
#include "memory/records/memory_observer.hpp"
#include "memory/records/trackers.hpp"
#include "threads/lock.hpp"

namespace tcuda {

// A call of the driver for host memory failed.
struct HostMemoryError : std::exception {
    explicit HostMemoryError(int status) : status(status) {}
    int status;
    const char *what() const noexcept override { return "the driver has no page-locked memory"; }
};

// The mutex guards all state. No thread holds the mutex while it calls the driver.
class HostAllocator {
public:
    HostAllocator(Driver &driver, int devices, CaptureGate &gate, std::function<bool(int device)> may_ask)
        : driver_(driver), waits_(driver, devices, heap_, history_, gate, std::move(may_ask)),
          thread_(std::make_unique<SettlingThread>(mutex_, [this](Lock &lock) {
              waits_.settle(lock, false);
              return waits_.any();
          })) {}
    ~HostAllocator();
    HostAllocator(const HostAllocator &) = delete;
    HostAllocator &operator=(const HostAllocator &) = delete;

    // A block of at least `size` bytes, all of which belong to the caller until free(). `size` is not 0. Throws
    // HostMemoryError.
    HostBlock *allocate(std::size_t size);

    // The memory is handed out again when no work of a device uses it any more.
    void free(HostBlock *block) noexcept;

    // The allocation that contains `address`: its begin and its size. Zeros if there is none.
    std::pair<Address, std::size_t> allocation_at(Address address);

    // Gives the memory back to the driver that neither the program nor a device uses. Waits for the devices.
    void empty_cache();

    // Captures and graphs. During a capture, by the gate, no freed memory is handed out again that captured work may
    // use. Meanwhile hold() keeps the memory of the graph until release(): the allocations that contain one of
    // `addresses`, whether they are freed or not. Returns the addresses that are in such an allocation.
    std::vector<Address> hold(const std::vector<Address> &addresses);
    void release(const std::vector<Address> &held) noexcept;

    // Segments that exist stay as they are.
    void change_settings(const HostSettings &settings);

    // From begin_rest() to end_rest(), the thread of the settings asks the devices nothing, and so holds no lock of
    // Python code: a child that is forked meanwhile finds no lock that nobody gives back.
    void begin_rest();
    void end_rest();

    // Tells `observer` of memory that is handed out again, so that the observer forgets the earlier uses. Null ends
    // that. After the call, the observer before is not called any more. While there is an observer, each new block has
    // pages of its own.
    void observe(MemoryObserver *observer);

    HostStatistics statistics();
    void reset_peaks();
    void reset_accumulated();

    // A tracker that is attached must live until detach(), which returns false if the tracker is not attached.
    void attach(Tracker *tracker);
    bool detach(Tracker *tracker);
    Tracker read(const Tracker &tracker);

    // History and snapshots, as those of a device. All streams are 0.
    void record_history(Stacks stacks, std::size_t capacity, std::uint32_t skipped, bool clear);
    void stop_history();
    bool records_history();
    // Notes the stacks of allocations also while the history does not want them.
    void keep_stacks(bool wanted);
    void set_metadata(Metadata metadata);
    std::vector<Occurrence> events();
    SegmentChanges::Bytes take_segment_changes();
    std::vector<HostSegmentView> snapshot();

    // In a forked child, frees do nothing from now on. At the exit of the interpreter, frees only count from now on,
    // and the thread of the settings ends.
    void abandon() { abandoned_.store(true, std::memory_order_relaxed); }
    void close();

private:
    void doubt(HostBlock *block) noexcept;
    void tell_allocated(const HostBlock &block) noexcept;
    int obtain(const HostSettings &settings, HostSegment &segment);
    int give_back(const HostSegment &segment);
    int grow(Lock &lock, std::size_t size, StackId noted);
    [[noreturn]] void fail(std::size_t size, StackId noted, int status);
    StackId stack(Stacks wanted) const { return history_.stacks() < wanted ? 0 : CallerStack::note(); }
    int add_segment(Lock &lock, HostSegment segment);
    void settle(Lock &lock, std::size_t wanted, StackId noted);
    std::int64_t excess(std::size_t wanted) const;
    void ask_host(Lock &lock);
    bool may_hold(std::size_t size) const;
    bool is_short(std::size_t wanted) const;
    void make_room(Lock &lock, std::size_t wanted);
    void release_idle_until(Lock &lock, std::size_t wanted);
    bool release_segment(Lock &lock, HostBlock *block);
    void settle_all(Lock &lock);
    void release_idle_segments(Lock &lock);

    Driver &driver_;
    std::mutex mutex_;
    std::atomic<bool> abandoned_{false}, closed_{false};
    HostHeap heap_;
    History history_;
    Trackers trackers_;
    HostWaits waits_;
    std::unique_ptr<SettlingThread> thread_;
    QuestionRate questions_;
    HostBlockList refused_;
    HostSettings settings_;
    HostLimit limit_;
    MemoryObserver *observer_ = nullptr;
    bool has_first_segment_ = false; // the segment whose size is the option pinned_reserve_segment_size_mb
    std::int64_t reserve_ = 0; // the bytes of the reserve; 0 if there is none
    HostStatistics statistics_;
    std::int64_t most_active_ = 0; // the most bytes that the program has had since empty_cache()
};

} // namespace tcuda
