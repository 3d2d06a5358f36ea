// A source of memory that is a library of the user, which a Python object keeps loaded.
#pragma once

#include <nanobind/nanobind.h>

#include "memory/ledger/library_source.hpp"

namespace tcuda {

class OwnedLibrarySource : public LibrarySource {
public:
    OwnedLibrarySource(std::uintptr_t allocate, std::uintptr_t free, nanobind::object owner)
        : LibrarySource(reinterpret_cast<Allocate *>(allocate), reinterpret_cast<Free *>(free)),
          owner_(std::move(owner)) {}
    ~OwnedLibrarySource() override;

private:
    void report(const char *text) noexcept override; // reports as Python reports an exception in a destructor

    nanobind::object owner_;
};

} // namespace tcuda
