// A source of memory that is a Python object.
#pragma once

#include <nanobind/nanobind.h>

#include "memory/allocator/external_source.hpp"

namespace tcuda {

// The method `allocate(size, device, stream)` of the object returns an object that keeps the memory, or raises
// MemoryError. The attribute `ptr` of that object is the address. The memory is freed when the reference to the object
// is dropped. The method `empty_cache(device)` gives back the memory that is kept for later.
class PythonSource : public ExternalSource {
public:
    PythonSource(nanobind::object pool, Reserve reserve, std::size_t unit)
        : ExternalSource(reserve, unit), pool_(std::move(pool)) {}
    ~PythonSource() override;

    Address allocate(std::size_t size, int device, Stream stream, void **token) override;
    void free(Address address, std::size_t size, int device, Stream stream, void *token) noexcept override;
    void empty_cache(int device) override;

private:
    nanobind::object pool_;
};

} // namespace tcuda
