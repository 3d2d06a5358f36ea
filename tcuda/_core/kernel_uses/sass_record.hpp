// What a kernel does with the words of its parameters.
#pragma once

#include <cstdint>
#include <map>

#include "kernel_uses/cubin.hpp"
#include "kernel_uses/kernel_use.hpp"
#include "kernel_uses/sass_parameters.hpp"

namespace tcuda::kernel_uses {

// Nothing is recorded before begin(), because the values of the registers are not final until then.
class SassRecord {
public:
    SassRecord(const ParameterBlock &block, const SassParameters &parameters)
        : block_(block), parameters_(parameters) {}

    void begin() { recording_ = true; }
    bool begun() const { return recording_; }

    void record(std::uint32_t origin, Kind kind, bool certain);
    // The kernel may use memory that no parameter points to.
    void incomplete();
    // An address whose origin is unknown may be that of any parameter. Throws CannotFollow.
    void lose() const;
    KernelUse result() const;

private:
    struct Word {
        Kind certain = Kind::none, possible = Kind::none;
    };

    const ParameterBlock &block_;
    const SassParameters &parameters_;
    bool recording_ = false, complete_ = true;
    std::map<std::size_t, Word> words_; // by offset
};

} // namespace tcuda::kernel_uses
