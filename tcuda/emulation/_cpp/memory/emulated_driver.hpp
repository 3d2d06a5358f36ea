// The driver table of emulated devices, whose memory is memory of the host.
#pragma once

#include <sys/mman.h>

#include <cstring>
#include <memory>
#include <vector>

#include "driver/driver.hpp"
#include "emulation/_cpp/memory/emulated_memory.hpp"
#include "emulation/_cpp/memory/pointer.hpp"

namespace tcuda {

// A subclass has the stream and event entries: emulated streams live outside of the core.
class EmulatedDriver : public Driver {
public:
    explicit EmulatedDriver(std::vector<EmulatedMemory *> memories) : memories_(std::move(memories)) {}

    int enter(int) override { return success; }
    int allocate(int device, std::size_t size, Address *address) override {
        *address = memory(device).allocate(size);
        return *address == 0 ? out_of_memory : success;
    }
    int free(int device, Address address) override { return result(memory(device).release(address)); }
    int memory_info(int device, std::size_t *free, std::size_t *total) override {
        *total = memory(device).limit();
        *free = *total - memory(device).used();
        return success;
    }
    void adopt(int device, Address address, std::size_t size) override { memory(device).adopt(address, size); }
    void disown(int device, Address address) override { memory(device).disown(address); }
    int granularity(int, std::size_t *bytes) override {
        *bytes = EmulatedMemory::page;
        return success;
    }
    int reserve(int device, std::size_t size, Address *address) override {
        return memory(device).reserve(size, address) ? success : out_of_memory;
    }
    int release(int device, Address address, std::size_t size) override {
        return result(memory(device).unreserve(address, size));
    }
    int create(int device, std::size_t size, Physical *physical) override {
        return memory(device).create(size, physical) ? success : out_of_memory;
    }
    int destroy(int device, Physical physical) override { return result(memory(device).destroy(physical)); }
    int map(int device, Address address, std::size_t size, Physical physical) override {
        return result(memory(device).map(address, size, physical));
    }
    int unmap(int device, Address address, std::size_t size) override {
        return result(memory(device).unmap(address, size));
    }
    int allocation_of(int device, Address address, Address *begin, std::size_t *size) override {
        const auto block = memory(device).block_at(address);
        if (!block)
            return invalid_value;
        *begin = block->address;
        *size = block->size;
        return success;
    }
    int export_physical(int device, Physical physical, int *descriptor) override {
        if (memory(device).descriptor() < 0)
            return not_supported;
        return result(memory(device).export_physical(physical, descriptor));
    }
    // CUDA returns the same status for a descriptor of something else.
    int import_physical(int device, int descriptor, Physical *physical) override {
        return memory(device).import_physical(descriptor, physical) ? success : unknown_error;
    }
    int map_imported(int device, Address address, std::size_t size, Physical physical) override {
        return map(device, address, size, physical);
    }
    int unmap_imported(int device, Address address, std::size_t size) override { return unmap(device, address, size); }
    int copy(int, Address to, Address from, std::size_t size) override {
        std::memcpy(host_pointer(to), host_pointer(from), size);
        return success;
    }
    int finish_copies(int) override { return success; }
    // Pages of the process. A subclass knows what page-locked memory means.
    int host_allocate(std::size_t size, Address *address) override {
        *address = 0;
        void *const pages = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (pages == MAP_FAILED)
            return out_of_memory;
        const int status = host_register(reinterpret_cast<Address>(pages), size);
        if (status != success)
            munmap(pages, size);
        else
            *address = reinterpret_cast<Address>(pages);
        return status;
    }
    int host_free(Address address, std::size_t size) override {
        const int status = host_unregister(address);
        if (status == success)
            munmap(reinterpret_cast<void *>(address), size);
        return status;
    }
    int host_register(Address, std::size_t) override { return success; }
    int host_unregister(Address) override { return success; }
    bool knows_host_uses() const override { return true; }
    int query_host(Address, std::size_t) override { return success; }
    int record_device(int device, Event *event) override {
        *event = 0;
        return synchronize_device(device);
    }
    int fill(int, Stream, Address address, std::size_t size, unsigned char value) override {
        std::memset(host_pointer(address), value, size);
        return success;
    }
    int use(int) override { return success; } // every device can access all memory of the host

private:
    EmulatedMemory &memory(int device) { return *memories_.at(static_cast<std::size_t>(device)); }
    static int result(bool done) { return done ? success : invalid_value; }

    const std::vector<EmulatedMemory *> memories_;
};

} // namespace tcuda
