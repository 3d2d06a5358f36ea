// The caching allocator of page-locked host memory, which all devices share.
#pragma once

#include <atomic>
#include <cstddef>
#include <functional>
#include <mutex>
#include <vector>

#include "driver/driver.hpp"
#include "host_allocator/host_block.hpp"
#include "host_allocator/host_heap.hpp"
#include "host_allocator/host_settings.hpp"
#include "host_allocator/host_statistics.hpp"
#include "host_allocator/host_waits.hpp"
#include "records/memory_observer.hpp"
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
    HostAllocator(Driver &driver, int devices, std::function<bool(int device)> may_ask)
        : driver_(driver), waits_(driver, devices, heap_, std::move(may_ask)) {}
    ~HostAllocator();
    HostAllocator(const HostAllocator &) = delete;
    HostAllocator &operator=(const HostAllocator &) = delete;

    // Memory of at least `size` bytes; 0 if `size` is 0. `block_size` becomes the size of the block, all of which
    // belongs to the caller. Throws HostMemoryError.
    Address allocate(std::size_t size, std::size_t *block_size);

    // False, with nothing changed, if no allocation begins at `address`. The memory is handed out again when no work of
    // a device uses it any more.
    bool free(Address address) noexcept;

    // The allocation that contains `address`: its begin and its size. Zeros if there is none.
    std::pair<Address, std::size_t> allocation_at(Address address);

    // Gives the memory back to the driver that neither the program nor a device uses. Waits for the devices.
    void empty_cache();

    // Captures and graphs. From begin_capture() to end_capture(), no freed memory is handed out again that captured work
    // may use. Meanwhile hold() keeps the memory of the graph until release(): the allocations that contain one of
    // `addresses`, whether they are freed or not. Returns the addresses that are in such an allocation.
    void begin_capture();
    void end_capture() noexcept;
    std::vector<Address> hold(const std::vector<Address> &addresses);
    void release(const std::vector<Address> &held) noexcept;

    // Segments that exist stay as they are.
    void change_settings(const HostSettings &settings);

    // Tells `observer` of memory that is handed out again, so that the observer forgets the earlier uses. Null ends that.
    // After the call, the observer before is not called any more.
    void observe(MemoryObserver *observer);

    HostStatistics statistics();
    void reset_peaks();
    void reset_accumulated();

    // In a forked child, frees do nothing from now on. At the exit of the interpreter, frees only count from now on.
    void abandon() { abandoned_.store(true, std::memory_order_relaxed); }
    void close() { closed_.store(true, std::memory_order_relaxed); }

private:
    int obtain(const HostSettings &settings, HostSegment &segment);
    int give_back(const HostSegment &segment);
    void grow(Lock &lock, std::size_t size);
    void trim(Lock &lock, std::size_t wanted);
    bool release_segment(Lock &lock, HostBlock *block);
    void release_idle_segments(Lock &lock);

    Driver &driver_;
    std::mutex mutex_;
    std::atomic<bool> abandoned_{false}, closed_{false};
    HostHeap heap_;
    HostWaits waits_;
    HostBlockList refused_;
    HostSettings settings_;
    MemoryObserver *observer_ = nullptr;
    bool has_reserved_ = false;
    HostStatistics statistics_;
    std::int64_t most_active_ = 0; // the most bytes that the program has had since empty_cache()
};

} // namespace tcuda
