// What the allocator asks of a CUDA driver: one table, filled from libcuda or from the memory of an emulated device.
#pragma once

#include <cstddef>
#include <cstdint>

namespace tcuda {

using Address = std::uintptr_t;
using Stream = std::uintptr_t;
using Event = std::uintptr_t;
using Physical = std::uint64_t; // physical memory without an address (CUmemGenericAllocationHandle)
using CaptureId = std::uint64_t; // 0: none

// The statuses that the allocator acts on; all others are handed on as they are.
constexpr int success = 0;
constexpr int out_of_memory = 2;
constexpr int not_ready = 600;

constexpr CaptureId some_capture = ~CaptureId(0); // one whose number cannot be asked for

// Every entry returns a CUDA status and leaves nothing behind when it fails.
//
// Lock rule: the memory entries may be called under the ledger's lock, so they must not call Python, nor anything that
// could come back to the ledger. They may wait for the device, so they are called without Python's lock. The stream and event entries may call Python, and are never called under that lock.
class Driver {
public:
    virtual ~Driver() = default;

    // Makes the device's context current in this thread if none is, as the CUDA runtime does: libraries of users count on it.
    virtual int enter(int device) = 0;

    // Memory
    virtual int allocate(int device, std::size_t size, Address *address) = 0;
    virtual int free(int device, Address address) = 0;
    virtual int memory_info(int device, std::size_t *free, std::size_t *total) = 0;

    // Virtual memory. A granularity of 0 says that the device has none.
    virtual int granularity(int device, std::size_t *bytes) = 0;
    virtual int reserve(int device, std::size_t size, Address *address) = 0;
    virtual int release(int device, Address address, std::size_t size) = 0;
    virtual int create(int device, std::size_t size, Physical *physical) = 0;
    virtual int destroy(int device, Physical physical) = 0;
    virtual int map(int device, Address address, std::size_t size, Physical physical) = 0;
    virtual int unmap(int device, Address address, std::size_t size) = 0;

    // Streams and events
    virtual int record(int device, Stream stream, Event *event) = 0; // a new event
    virtual int query(int device, Event event) = 0;                  // success or not_ready
    virtual int synchronize(int device, Event event) = 0;
    virtual int destroy_event(int device, Event event) = 0;
    virtual int query_stream(int device, Stream stream) = 0; // success, not_ready, or that the stream is gone
    virtual int synchronize_stream(int device, Stream stream) = 0;
    virtual int synchronize_device(int device) = 0;
    // The capture that a stream takes part in; for the default stream, also one of a stream that waits for it.
    virtual int capture_of(int device, Stream stream, CaptureId *capture) = 0;
};

} // namespace tcuda
