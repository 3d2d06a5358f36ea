// Where the pointers of a kernel go: the values of the registers of all functions that the kernel calls.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "sanitizer/_cpp/kernel_uses/ptx_frames.hpp"
#include "sanitizer/_cpp/kernel_uses/ptx_memory.hpp"
#include "sanitizer/_cpp/kernel_uses/ptx_module.hpp"
#include "sanitizer/_cpp/kernel_uses/ptx_regions.hpp"
#include "sanitizer/_cpp/kernel_uses/ptx_values.hpp"

namespace tcuda::kernel_uses::ptx {

class Flow {
public:
    // `steps` is how many instructions may be followed. The flow subtracts its own steps.
    Flow(const Module &module, const Function &entry, std::size_t &steps);

    // False if a limit was exceeded.
    bool run();

    const Module &module() const { return module_; }
    Frames &frames() { return frames_; }
    const KernelMemory &memory() const { return memory_; }
    Values &values() { return values_; }
    const Values &values() const { return values_; }
    Regions &regions() { return regions_; }
    const Regions &regions() const { return regions_; }
    Value value_of(std::uint32_t frame, const Operand &operand);
    // Whether it is known what the called function does with memory.
    bool knows_callee(const Function &function, const Instruction &instruction) const;

private:
    static constexpr std::size_t most_rounds = 64;

    void run_frame(std::uint32_t number);
    void spend(std::size_t steps) { steps_ -= steps < steps_ ? steps : steps_; }
    void step(std::uint32_t frame, const Instruction &instruction, std::uint32_t number);
    void set(std::uint32_t frame, const Operand &operand, Value value);
    void set_all(std::uint32_t frame, const Instruction &instruction, Value value);
    Value blended(Value first, Value second);
    Value masked(Value value, Value mask);

    void load(std::uint32_t frame, const Instruction &instruction, const Operation &operation);
    void store(std::uint32_t frame, const Instruction &instruction, const Operation &operation);
    void store_at(Value address, Space space, std::int64_t offset, unsigned bytes, Value value, bool is_certain);
    void exchange(std::uint32_t frame, const Instruction &instruction, const Operation &operation);
    static std::string_view name_of_callee(const Function &function, const Instruction &instruction);
    // Null if the module has no text of the function.
    const Function *body_of(std::string_view name) const;
    void call(std::uint32_t frame, const Instruction &instruction, std::uint32_t number);
    void call_known(std::uint32_t caller, const Instruction &instruction, std::uint32_t callee);
    void call_unknown(std::uint32_t frame, const Instruction &instruction);
    void store_pointer(std::uint32_t region, Value value);
    void copy_region(std::uint32_t from, std::uint32_t to);

    const Module &module_;
    Values values_;
    Regions regions_;
    KernelMemory memory_;
    Frames frames_;
    std::size_t &steps_;
    bool changed_ = false;
};

} // namespace tcuda::kernel_uses::ptx
