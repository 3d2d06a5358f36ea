// Where the pointers of a kernel go: the values of the registers of all functions that the kernel calls.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <unordered_map>
#include <utility>
#include <vector>

#include "kernel_uses/kernel_use.hpp"
#include "kernel_uses/ptx_held.hpp"
#include "kernel_uses/ptx_module.hpp"
#include "kernel_uses/ptx_regions.hpp"
#include "kernel_uses/ptx_values.hpp"

namespace tcuda::kernel_uses::ptx {

// An address of an instruction and what the instruction does there.
struct Access {
    Value address;
    Space space;
    Kind kind;
};

// What the instructions of a kernel do, with the values that are known at the end.
struct Effects {
    std::vector<Access> accesses;
    std::vector<Value> global;    // converted to addresses of global memory
    std::vector<Value> stored;    // stored in memory that is not followed
    std::vector<Value> published; // stored in variables of the module
    std::vector<Value> given;     // given to functions whose text is not known
    std::vector<std::pair<Value, Kind>> maps; // addresses of tensor maps
    bool has_opaque = false;      // accesses that cannot be followed, of memory that may be anywhere
};

class Flow {
public:
    // `steps`: how many instructions may be followed; the flow takes its steps off.
    Flow(const Module &module, const Function &entry, std::size_t &steps);

    // False if a limit was exceeded.
    bool run();
    Effects effects();

    const Values &values() const { return values_; }
    const Regions &regions() const { return regions_; }

private:
    // A function for one place that calls the function. Recursive calls share one frame.
    struct Frame {
        const Function *function;
        std::uint32_t caller;
        std::vector<Held> registers;
        std::vector<std::uint32_t> regions; // of the variables
        std::unordered_map<std::uint32_t, std::uint32_t> calls; // frames by the number of the instruction
    };
    // A value that was just stored in local memory.
    struct Stored {
        std::uint32_t region;
        std::int64_t offset;
        unsigned bytes;
        Value value;
    };

    static constexpr std::size_t most_frames = 256, most_rounds = 64;
    static constexpr std::uint32_t no_region = ~std::uint32_t(0);

    std::uint32_t add_frame(const Function &function, std::uint32_t caller);
    std::uint32_t frame_of_call(std::uint32_t caller, std::uint32_t instruction, const Function &function);
    bool is_written(const Function &function, std::uint32_t number);
    const std::vector<bool> &written_registers(const Function &function);
    std::uint32_t region_of(std::uint32_t frame, std::uint32_t variable);
    std::uint32_t region_of_module(std::uint32_t variable);
    std::uint32_t heap();

    void run_frame(std::uint32_t number);
    void spend(std::size_t steps) { steps_ -= steps < steps_ ? steps : steps_; }
    void step(std::uint32_t frame, const Instruction &instruction, std::uint32_t number);
    Value value_of(std::uint32_t frame, const Operand &operand);
    void set(std::uint32_t frame, const Operand &operand, Value value);
    void set_all(std::uint32_t frame, const Instruction &instruction, Value value);
    Value blended(Value first, Value second);
    Value masked(Value value, Value mask);

    void load(std::uint32_t frame, const Instruction &instruction, const Operation &operation);
    Value loaded(Value address, Space space, std::int64_t offset, unsigned bytes);
    void store(std::uint32_t frame, const Instruction &instruction, const Operation &operation);
    void store(Value address, Space space, std::int64_t offset, unsigned bytes, Value value, bool is_certain);
    void exchange(std::uint32_t frame, const Instruction &instruction, const Operation &operation);
    // The region at an address; no_region if the address is none of a region, or of several.
    std::uint32_t region_at(const Sum &sum) const;
    static bool is_in(Region::Kind kind, Space space);
    void call(std::uint32_t frame, const Instruction &instruction, std::uint32_t number);
    void call_known(std::uint32_t caller, const Instruction &instruction, std::uint32_t callee);
    void call_unknown(std::uint32_t frame, const Instruction &instruction);
    void give(Value value, std::set<std::uint32_t> &seen, Effects &effects);
    void add_effects(std::uint32_t frame, const Instruction &instruction, Effects &effects);

    // The operand with this number of those in brackets; null if there are fewer.
    const Operand *address_of(const Function &function, const Instruction &instruction, unsigned which) const;

    const Module &module_;
    Values values_;
    Regions regions_;
    std::vector<Frame> frames_;
    std::map<const Function *, std::uint32_t> shared_frames_; // of functions for which there are too many frames
    std::map<const Function *, std::vector<bool>> written_;
    std::map<std::pair<const Function *, std::uint32_t>, std::uint32_t> shared_regions_;
    std::map<std::uint32_t, std::uint32_t> module_regions_;
    std::vector<Stored> stored_; // since the last place to which a branch may go
    std::uint32_t heap_ = no_region, dynamic_shared_ = no_region;
    std::uint32_t unknown_shared_, unknown_local_;
    std::size_t &steps_;
    bool changed_ = false;
};

} // namespace tcuda::kernel_uses::ptx
