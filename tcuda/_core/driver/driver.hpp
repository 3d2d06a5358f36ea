// The table of everything that the allocator and the ledger ask of a CUDA driver. The table is that of CUDA, or that of
// emulated devices.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>

#include "driver/status.hpp"

namespace tcuda {

using Address = std::uintptr_t;
using Stream = std::uintptr_t;
using Event = std::uintptr_t;
using Physical = std::uint64_t; // memory without an address (CUmemGenericAllocationHandle)
using CaptureId = std::uint64_t; // 0: no capture

constexpr CaptureId some_capture = ~CaptureId(0); // a capture whose number the driver does not tell

// Every entry returns a CUDA status. An entry that fails leaves nothing behind.
//
// Lock rule: the memory entries may be called under the ledger's lock. So they must not call Python, nor anything that
// could come back to the ledger. They may wait for the device, so they are called without Python's lock. The stream and
// event entries may call Python. They are never called under the ledger's lock.
class Driver {
public:
    virtual ~Driver() = default;

    // Makes the device's context current in this thread if no context is current. The CUDA runtime does the same, and
    // the libraries of users rely on that.
    virtual int enter(int device) = 0;

    // Memory
    virtual int allocate(int device, std::size_t size, Address *address) = 0;
    virtual int free(int device, Address address) = 0;
    virtual int memory_info(int device, std::size_t *free, std::size_t *total) = 0;

    // Memory that a library of a user hands out for the device, until the library gets the memory back. CUDA knows the
    // memory already, so that its table does nothing. These entries call no driver: adopt() may throw std::bad_alloc.
    virtual void adopt(int, Address, std::size_t) {}
    virtual void disown(int, Address) {}
    // Does the work that a device has not done yet although it could: a library of the program frees memory next, and
    // its free() may be no call of the driver. Called without the lock of a ledger.
    virtual void finish(int) {}

    // Virtual memory. A granularity of 0 means that the device has no virtual memory.
    virtual int granularity(int device, std::size_t *bytes) = 0;
    virtual int reserve(int device, std::size_t size, Address *address) = 0;
    virtual int release(int device, Address address, std::size_t size) = 0;
    virtual int create(int device, std::size_t size, Physical *physical) = 0;
    virtual int destroy(int device, Physical physical) = 0;
    virtual int map(int device, Address address, std::size_t size, Physical physical) = 0;
    virtual int unmap(int device, Address address, std::size_t size) = 0;

    // Memory in several processes. allocation_of() finds the whole allocation that contains an address. An exported
    // descriptor is the caller's, and keeps the physical memory alive until every process has closed it. An import
    // keeps the memory alive too, and is destroyed like created memory.
    virtual int allocation_of(int device, Address address, Address *begin, std::size_t *size) = 0;
    virtual int export_physical(int device, Physical physical, int *descriptor) = 0;
    virtual int import_physical(int device, int descriptor, Physical *physical) = 0;
    // As map() and unmap(), for imported memory. At first, only devices in use can access the memory.
    virtual int map_imported(int device, Address address, std::size_t size, Physical physical) = 0;
    virtual int unmap_imported(int device, Address address, std::size_t size) = 0;
    // Takes the device into use, so that the device can access all imported memory.
    virtual int use(int device) = 0;

    // Copies between memory of the device and page-locked memory of the host, on no stream of the program. The memory
    // must not change before finish_copies(), which waits for the copies. Called without the lock of a ledger.
    virtual int copy(int device, Address to, Address from, std::size_t size) = 0;
    virtual int finish_copies(int device) = 0;

    // Page-locked memory of the host, which all devices can use. host_allocate() takes whole pages. These entries may
    // call Python, so they are never called under a lock.
    virtual int host_allocate(std::size_t size, Address *address) = 0;
    virtual int host_free(Address address, std::size_t size) = 0;
    virtual int host_register(Address address, std::size_t size) = 0;
    virtual int host_unregister(Address address) = 0;
    // How many more bytes of the host can be page-locked before the system runs out of memory. The largest number if
    // nobody knows. The driver may refuse less.
    virtual std::size_t host_room() { return std::numeric_limits<std::size_t>::max(); }
    // The NUMA node of the host that is closest to the device of the current context. Below 0 if the machine has one
    // node only, or if the node is not known.
    virtual int host_node() { return -1; }
    // Whether the driver can tell which memory of the host is in use: query_host() then returns success or not_ready.
    virtual bool knows_host_uses() const = 0;
    virtual int query_host(Address address, std::size_t size) = 0;

    // Streams and events
    virtual int record(int device, Stream stream, Event *event) = 0; // creates the event
    // Records an event behind all work that the device was given so far; creates the event if it is 0. The event stays
    // 0 if the device has nothing to do. A stream that captures forbids the call.
    virtual int record_device(int device, Event *event) = 0;
    virtual int query(int device, Event event) = 0; // success or not_ready
    virtual int synchronize(int device, Event event) = 0;
    virtual int destroy_event(int device, Event event) = 0;
    virtual int query_stream(int device, Stream stream) = 0; // success, not_ready, or a failure if the stream is gone
    virtual int synchronize_stream(int device, Stream stream) = 0;
    virtual int synchronize_device(int device) = 0;
    // Sets `size` bytes of memory of the device to `value`, in the order of the stream, which does not capture.
    virtual int fill(int device, Stream stream, Address address, std::size_t size, unsigned char value) = 0;
    // The capture that a stream takes part in, 0 if there is none. A stream that waits for the default stream makes the
    // default stream part of its capture.
    virtual int capture_of(int device, Stream stream, CaptureId *capture) = 0;
};

} // namespace tcuda
