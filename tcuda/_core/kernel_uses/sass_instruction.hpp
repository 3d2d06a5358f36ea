// An instruction of a listing that NVIDIA's disassembler prints.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace tcuda::kernel_uses {

// The number of a register: general registers first, then the uniform ones. `zero` stands for RZ and URZ.
struct Register {
    static constexpr std::uint16_t uniform = 256, zero = 511;
    std::uint16_t number = zero;
    bool wide = false;   // the register and the next one, as one number of 64 bits
    bool offset = false; // an offset beside an address: 32 bits, or scaled
};

// A predicate, in a number that differs for P and UP. `always` stands for PT and UPT.
struct Predicate {
    static constexpr std::uint8_t uniform = 8, always = 255;
    std::uint8_t number = always;
    bool negated = false;
};

struct Operand {
    enum class Kind : std::uint8_t { other, general, immediate, predicate, constant, memory, label };
    Kind kind = Kind::other;
    bool negated = false; // of a register or constant
    Predicate predicate;
    std::vector<Register>
        registers;           // general: one. constant: its index, if it has one. memory: the terms of the address
    std::int64_t number = 0; // immediate: itself. constant, memory: the offset
    std::uint32_t bank = 0;  // of a constant; `unknown_bank` if a register holds the bank
    std::string_view text;   // of a label, and of an operand of another kind

    static constexpr std::uint32_t unknown_bank = 0xffffffff;
};

struct Instruction {
    std::uint64_t address = 0; // in its section
    std::optional<Predicate> guard;
    std::string_view name;                   // without its modifiers; empty if the instruction is not understood
    std::vector<std::string_view> modifiers; // what stands behind dots
    std::vector<Operand> operands;
    std::vector<std::string_view> targets; // of a branch through a register, if the disassembler names them

    bool has(std::string_view modifier) const;
};

// None if the line begins with no address of an instruction. The instruction refers to the text of the line.
std::optional<Instruction> read_instruction(std::string_view line);

} // namespace tcuda::kernel_uses
