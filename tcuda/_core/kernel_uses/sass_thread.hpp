// A thread of a kernel at one instruction.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "kernel_uses/cubin.hpp"
#include "kernel_uses/sass_instruction.hpp"
#include "kernel_uses/sass_listing.hpp"
#include "kernel_uses/sass_origins.hpp"
#include "kernel_uses/sass_parameters.hpp"
#include "kernel_uses/sass_state.hpp"

namespace tcuda::kernel_uses {

// What the operands of instructions are, by what the registers of a thread hold.
class SassThread {
public:
    using Guard = std::optional<Predicate>;
    struct Term {
        SassValue value;
        bool negated;
    };

    SassThread(const SassListing &listing, const ParameterBlock &block);

    OriginSets &sets() { return sets_; }
    const SassParameters &parameters() const { return parameters_; }
    std::map<std::int32_t, SassValue> &stack() { return registers_->stack; }
    const Guard &guard() const { return guard_; }

    // At the begin of the kernel.
    SassState start() const;
    void begin_block(const SassState &state);
    void begin_instruction(const Guard &guard) { guard_ = guard; }
    // Where `guard` holds.
    SassState state(const Guard &guard) { return registers_->state(sets_, guard); }

    // The place of a convergence barrier among the registers. A barrier holds the place where its threads go on.
    std::optional<std::uint16_t> barrier_of(const Operand &operand) const;
    // A place among the registers, under the guard.
    SassValue read_at(std::uint16_t place) { return registers_->read(sets_, place, guard_); }
    void write_at(std::uint16_t place, SassValue value) { registers_->write(sets_, place, guard_, value); }
    // The register with this number, or the next one (half 1).
    SassValue read(std::uint16_t number, unsigned half);
    // `further` bytes behind the operand.
    SassValue constant(const Operand &operand, std::int64_t further);
    // The low half (0) or the high half (1) of an operand.
    SassValue value(const Operand &operand, unsigned half);
    SassValue sum(const std::vector<Term> &terms);
    // The origins of all operands together.
    SassValue all(const std::vector<const Operand *> &sources, unsigned half);

    // The register that an instruction writes, and the operands behind it.
    static const Operand *target_of(const Instruction &instruction, std::vector<const Operand *> &sources);
    void write(const Operand *target, unsigned piece, SassValue value);
    void write_number(const Instruction &instruction);
    void forget_predicates(const Instruction &instruction);

private:
    std::uint16_t place(std::uint16_t number) const;
    bool names_variable(std::string_view text) const;

    const SassListing &listing_;
    const SassParameters parameters_;
    OriginSets sets_;
    const std::size_t general_, uniform_; // how many registers of each kind there are
    std::unique_ptr<SassRegisters> registers_;
    Guard guard_;
};

} // namespace tcuda::kernel_uses
