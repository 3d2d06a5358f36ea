// The functions of a kernel, as often as the kernel calls them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <unordered_map>
#include <utility>
#include <vector>

#include "sanitizer/_cpp/kernel_uses/ptx_held.hpp"
#include "sanitizer/_cpp/kernel_uses/ptx_module.hpp"
#include "sanitizer/_cpp/kernel_uses/ptx_regions.hpp"

namespace tcuda::kernel_uses::ptx {

// A function for one place that calls the function. Recursive calls share one frame.
struct Frame {
    const Function *function;
    std::uint32_t caller;
    std::vector<Held> registers;
    std::vector<std::uint32_t> regions;                     // of the variables
    std::unordered_map<std::uint32_t, std::uint32_t> calls; // frames by the number of the instruction
};

// The frames of a kernel by number, and the regions of the variables. The kernel itself has the number 0.
class Frames {
public:
    Frames(const Module &module, const Function &entry, Regions &regions);

    Frame &operator[](std::uint32_t number) { return frames_[number]; }
    std::size_t size() const { return frames_.size(); }

    // The frame of the function that an instruction calls, and whether the call was not known before.
    std::pair<std::uint32_t, bool> of_call(std::uint32_t caller, std::uint32_t instruction, const Function &function);
    std::uint32_t region_of(std::uint32_t frame, std::uint32_t variable);
    std::uint32_t region_of_module(std::uint32_t variable);
    std::uint32_t heap();

private:
    static constexpr std::size_t most_frames = 256;

    std::uint32_t add(const Function &function, std::uint32_t caller);
    const std::vector<bool> &written_registers(const Function &function);

    const Module &module_;
    Regions &regions_;
    std::vector<Frame> frames_;
    std::map<const Function *, std::uint32_t> shared_frames_; // of functions for which there are too many frames
    std::map<const Function *, std::vector<bool>> written_;
    std::map<std::pair<const Function *, std::uint32_t>, std::uint32_t> shared_regions_;
    std::map<std::uint32_t, std::uint32_t> module_regions_;
    std::uint32_t heap_ = no_region, dynamic_shared_ = no_region;
};

} // namespace tcuda::kernel_uses::ptx
