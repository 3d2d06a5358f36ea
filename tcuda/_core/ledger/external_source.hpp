// Sources of memory other than the caching allocator: pools of CuPy, libraries of users, the driver itself.
#pragma once

#include <cstddef>
#include <cstdio>
#include <exception>
#include <mutex>
#include <new>
#include <stdexcept>
#include <vector>

#include "allocator/block.hpp"
#include "driver/driver.hpp"
#include "bindings/unwinding.hpp"

namespace tcuda {

// What the ledger cannot see by itself of the memory that a source keeps.
enum class Reserve {
    each,     // every allocation is a segment of its own
    reported, // the source takes its segments from DeviceLedger::allocate_segment()
    unknown,  // the source does not say: what is reserved counts as 0
};

// Lock rule: neither call is made under the ledger's lock, so that both may call Python, or come back to the ledger. Where
// every allocation is a segment, both may wait for the device: they are made without Python's lock.
class ExternalSource {
public:
    ExternalSource(Reserve reserve, std::size_t unit) : reserve(reserve), unit(unit) {}
    virtual ~ExternalSource() = default;

    // Memory of `size` bytes for use on `stream`, or 0 if there is none. `token` is handed back to free().
    virtual Address allocate(std::size_t size, int device, Stream stream, void **token) = 0;
    virtual void free(Address address, std::size_t size, int device, Stream stream, void *token) noexcept = 0;

    // Gives back what is kept for later.
    virtual void empty_cache(int) {}

    const Reserve reserve;
    const std::size_t unit; // what sizes are rounded up to
};

// The driver, with nothing kept for later.
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

    // Offers the driver again what it failed to take back.
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
        } catch (const std::bad_alloc &) { // the host has no memory either: it is lost
        }
    }

    static constexpr std::size_t unit_size = tcuda::unit;
    Driver &driver_;
    std::mutex mutex_; // guards `unfreed_`; nothing is called under it
    std::vector<Unfreed> unfreed_;
};

// Functions of a shared library, with the signatures of torch's pluggable allocator.
class LibrarySource : public ExternalSource {
public:
    using Allocate = void *(std::ptrdiff_t size, int device, void *stream);
    using Free = void(void *address, std::ptrdiff_t size, int device, void *stream);

    LibrarySource(Allocate *allocate, Free *free)
        : ExternalSource(Reserve::each, 1), allocate_(allocate), free_(free) {}

    // Whatever the library throws becomes a std::runtime_error.
    Address allocate(std::size_t size, int device, Stream stream, void **) override {
        try {
            Unwinding unwinding(Unwinding::Exceptions{});
            void *const address =
                allocate_(static_cast<std::ptrdiff_t>(size), device, reinterpret_cast<void *>(stream));
            unwinding.dismiss();
            return reinterpret_cast<Address>(address);
        } catch (const std::exception &error) {
            throw std::runtime_error(error.what());
        } catch (...) {
            throw std::runtime_error("The alloc function of the pluggable allocator threw something that is no "
                                     "std::exception. It should return NULL where it has no memory.");
        }
    }
    void free(Address address, std::size_t size, int device, Stream stream, void *) noexcept override {
        try {
            Unwinding unwinding(Unwinding::Exceptions{});
            free_(reinterpret_cast<void *>(address), static_cast<std::ptrdiff_t>(size), device,
                  reinterpret_cast<void *>(stream));
            unwinding.dismiss();
        } catch (const std::exception &error) {
            report(error.what());
        } catch (...) {
            report("The free function of the pluggable allocator threw something that is no std::exception. It should "
                   "throw nothing, for nobody can catch that.");
        }
    }

protected:
    // Tells of a failure that no caller can be told of.
    virtual void report(const char *text) noexcept { std::fprintf(stderr, "%s\n", text); }

private:
    Allocate *allocate_;
    Free *free_;
};

} // namespace tcuda
