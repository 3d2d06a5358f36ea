// A span of code in which captures forbid no call of the current thread.
#pragma once

#include "driver/libcuda.hpp"

namespace tcuda {

class RelaxedCaptures {
public:
    explicit RelaxedCaptures(const libcuda::CaptureCalls &captures) : captures_(captures) {
        captures_.exchange_mode(&mode_);
    }
    ~RelaxedCaptures() { captures_.exchange_mode(&mode_); }
    RelaxedCaptures(const RelaxedCaptures &) = delete;
    RelaxedCaptures &operator=(const RelaxedCaptures &) = delete;

private:
    const libcuda::CaptureCalls &captures_;
    int mode_ = libcuda::capture_mode_relaxed; // the thread's own mode after the constructor
};

} // namespace tcuda
