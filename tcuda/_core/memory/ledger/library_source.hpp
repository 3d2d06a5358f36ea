#pragma once

#include <cstddef>
#include <cstdio>
#include <exception>
#include <stdexcept>

#include "driver/driver.hpp"
#include "memory/allocator/external_source.hpp"
#include "threads/unwinding.hpp"

namespace tcuda {

// Memory from two functions of a shared library, which have the signatures of torch's pluggable allocator.
class LibrarySource : public ExternalSource {
public:
    using Allocate = void *(std::ptrdiff_t size, int device, void *stream);
    using Free = void(void *address, std::ptrdiff_t size, int device, void *stream);

    LibrarySource(Allocate *allocate, Free *free)
        : ExternalSource(Reserve::each, 1), allocate_(allocate), free_(free) {}

    bool is_library() const override { return true; }

    // Every exception of the library becomes a std::runtime_error.
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
    // Reports a failure of free(), which must not throw.
    virtual void report(const char *text) noexcept { std::fprintf(stderr, "%s\n", text); }

private:
    Allocate *allocate_;
    Free *free_;
};

} // namespace tcuda
