// What the registers and the stack of a thread hold at one place of a kernel.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "kernel_uses/sass_instruction.hpp"
#include "kernel_uses/sass_origins.hpp"

namespace tcuda::kernel_uses {

// A value of 32 bits. The meaning of `constant`, if it is known, depends on the value: the number itself for a plain
// number; the distance to the stack at the begin of the kernel for an address of own memory; the distance to the first
// parameter for an address of the parameter block; the offset in constant bank 4 for an address from that bank.
struct SassValue {
    Origins origins = 0;
    std::int32_t constant = 0;
    bool known = false;

    bool operator==(const SassValue &other) const {
        return origins == other.origins && known == other.known && (!known || constant == other.constant);
    }
    bool operator!=(const SassValue &other) const { return !(*this == other); }
};

inline SassValue joined(OriginSets &sets, const SassValue &left, const SassValue &right) {
    if (left == right)
        return left;
    return {sets.joined(left.origins, right.origins), 0, false};
}

// The state at the begin of a basic block.
struct SassState {
    std::vector<SassValue> registers;
    std::map<std::int32_t, SassValue> stack; // by the distance to the stack at the begin of the kernel

    // Returns whether the state has changed.
    bool join(OriginSets &sets, const SassState &other);
};

// The state inside a basic block. An instruction under a predicate writes a register only where the predicate holds, so
// the register has two values until the predicate changes.
class SassRegisters {
public:
    explicit SassRegisters(const SassState &state);

    static constexpr std::uint16_t count = 512;

    SassValue read(OriginSets &sets, std::uint16_t number, const std::optional<Predicate> &guard) const;
    void write(OriginSets &sets, std::uint16_t number, const std::optional<Predicate> &guard, SassValue value);
    void forget(OriginSets &sets, std::uint8_t predicate); // the predicate gets a new value
    // The state where `guard` holds.
    SassState state(OriginSets &sets, const std::optional<Predicate> &guard) const;

    std::map<std::int32_t, SassValue> stack;

private:
    struct Guarded {
        SassValue holds, fails;
        std::uint8_t predicate = Predicate::always;
    };
    std::vector<Guarded> values_;
    std::vector<std::uint16_t> guarded_; // registers with two values
};

} // namespace tcuda::kernel_uses
