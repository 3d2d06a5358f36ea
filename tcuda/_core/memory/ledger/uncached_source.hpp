#pragma once

#include <cstddef>
#include <mutex>
#include <new>
#include <vector>

#include "driver/driver.hpp"
#include "memory/allocator/block.hpp"
#include "memory/allocator/external_source.hpp"

namespace tcuda {

// Memory straight from the driver: nothing is kept for later allocations.
class UncachedSource : public ExternalSource {
public:
    explicit UncachedSource(Driver &driver) : ExternalSource(Reserve::each, unit_size), driver_(driver) {}

    Address allocate(std::size_t size, int device, Stream, void **) override {
        Address address = 0;
        return driver_.allocate(device, size, &address) == success ? address : 0;
    }
    void free(Address address, std::size_t, int device, Stream, void *) noexcept override {
        if (driver_.free(device, address) != success)
            keep({device, address});
    }

    // Offers the driver the memory again that the driver failed to take back.
    void empty_cache(int device) override {
        std::vector<Unfreed> left;
        {
            const std::lock_guard lock(mutex_);
            left.swap(unfreed_);
        }
        for (const Unfreed &memory : left) {
            if (memory.device == device)
                free(memory.address, 0, memory.device, 0, nullptr);
            else
                keep(memory);
        }
    }

private:
    struct Unfreed {
        int device;
        Address address;
    };

    void keep(Unfreed memory) noexcept {
        const std::lock_guard lock(mutex_);
        try {
            unfreed_.push_back(memory);
        } catch (const std::bad_alloc &) { // without host memory the address is lost
        }
    }

    static constexpr std::size_t unit_size = tcuda::unit;
    Driver &driver_;
    std::mutex mutex_; // guards `unfreed_`; no function is called under it
    std::vector<Unfreed> unfreed_;
};

} // namespace tcuda
