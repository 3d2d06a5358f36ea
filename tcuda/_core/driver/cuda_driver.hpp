// The driver table of CUDA: libcuda.so.1.
#pragma once

#include <map>
#include <mutex>

#include "driver/cuda_devices.hpp"
#include "driver/driver.hpp"
#include "driver/imported_access.hpp"
#include "driver/libcuda.hpp"
#include "driver/status.hpp"

namespace tcuda {

// Each call makes the device's primary context current for its own duration. No capture of any thread forbids the call:
// the memory of the allocator is not part of what is captured.
class CudaDriver : public Driver {
public:
    // Throws std::runtime_error if there is no usable driver.
    CudaDriver();

    int enter(int device) override;
    int allocate(int device, std::size_t size, Address *address) override;
    int free(int device, Address address) override;
    int memory_info(int device, std::size_t *free, std::size_t *total) override;
    int granularity(int device, std::size_t *bytes) override;
    int reserve(int device, std::size_t size, Address *address) override;
    int release(int device, Address address, std::size_t size) override;
    int create(int device, std::size_t size, Physical *physical) override;
    int destroy(int device, Physical physical) override;
    int map(int device, Address address, std::size_t size, Physical physical) override;
    int unmap(int device, Address address, std::size_t size) override;
    int use(int device) override;
    int copy(int device, Address to, Address from, std::size_t size) override;
    int finish_copies(int device) override;
    int allocation_of(int device, Address address, Address *begin, std::size_t *size) override;
    int export_physical(int device, Physical physical, int *descriptor) override;
    int import_physical(int device, int descriptor, Physical *physical) override;
    int map_imported(int device, Address address, std::size_t size, Physical physical) override;
    int unmap_imported(int device, Address address, std::size_t size) override;
    int host_allocate(std::size_t size, Address *address) override;
    int host_free(Address address, std::size_t size) override;
    int host_register(Address address, std::size_t size) override;
    int host_unregister(Address address) override;
    std::size_t host_room() override;
    int host_node() override;
    bool knows_host_uses() const override { return false; }
    int query_host(Address, std::size_t) override { return not_supported; }
    int record(int device, Stream stream, Event *event) override;
    int record_device(int device, Event *event) override;
    int query(int device, Event event) override;
    int synchronize(int device, Event event) override;
    int destroy_event(int device, Event event) override;
    int query_stream(int device, Stream stream) override;
    int fill(int device, Stream stream, Address address, std::size_t size, unsigned char value) override;
    int synchronize_stream(int device, Stream stream) override;
    int synchronize_device(int device) override;
    int capture_of(int device, Stream stream, CaptureId *capture) override;

private:
    bool is_active(int device) const;
    int active_device() const;
    int copy_stream(int device, libcuda::Stream *stream);

    CudaDevices devices_;
    const libcuda::MemoryCalls &memory_;
    const libcuda::HostMemoryCalls &host_memory_;
    const libcuda::StreamCalls &streams_;
    const libcuda::CaptureCalls &captures_;
    ImportedAccess imported_{devices_.contexts()};
    std::mutex copies_mutex_; // guards `copy_streams_`; nothing is called under the mutex but libcuda
    std::map<int, libcuda::Stream> copy_streams_; // by device, for copy()
};

} // namespace tcuda
