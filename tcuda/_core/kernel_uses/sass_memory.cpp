#include "kernel_uses/sass_memory.hpp"

#include <unordered_map>

namespace tcuda::kernel_uses {
namespace {

struct Meaning {
    Space space;
    Kind kind;
    int address; // which of the operands in brackets has the address
    bool to_shared = false, unknown = false;
};

using Meanings = std::unordered_map<std::string_view, Meaning>;

// Made when the library is loaded: a fork while a thread makes the table would leave the table unfinished in the child.
// Never freed: kernels may be launched while the process exits.
const Meanings &meanings = *new Meanings{
    {"LDG", {Space::any, Kind::read, 0}},
    {"LD", {Space::any, Kind::read, 0}},
    {"LDGMC", {Space::any, Kind::read, 0, false, true}},
    {"LDGSTS", {Space::any, Kind::read, 1, true}},
    {"STG", {Space::any, Kind::write, 0}},
    {"ST", {Space::any, Kind::write, 0}},
    {"ATOM", {Space::any, Kind::both, 0}},
    {"ATOMG", {Space::any, Kind::both, 0}},
    {"RED", {Space::any, Kind::both, 0}},
    {"REDG", {Space::any, Kind::both, 0}},
    {"LDS", {Space::shared, Kind::read, 0}},
    {"LDSM", {Space::shared, Kind::read, 0}},
    {"STS", {Space::shared, Kind::write, 0}},
    {"STSM", {Space::shared, Kind::write, 0}},
    {"STAS", {Space::shared, Kind::write, 0}},
    {"ATOMS", {Space::shared, Kind::both, 0}},
    {"REDAS", {Space::shared, Kind::both, 0}},
    {"LDL", {Space::stack, Kind::read, 0}},
    {"STL", {Space::stack, Kind::write, 0}},
    {"UTMALDG", {Space::map, Kind::read, 1, true}},
    {"UTMASTG", {Space::map, Kind::write, 1}},
    {"UTMAREDG", {Space::map, Kind::both, 1}},
    {"UBLKRED", {Space::any, Kind::both, 0}},
    // These fetch into a cache, or order accesses.
    {"CCTL", {Space::none, Kind::none, 0}},
    {"CCTLL", {Space::none, Kind::none, 0}},
    {"UTMAPF", {Space::none, Kind::none, 0}},
    {"UTMACCTL", {Space::none, Kind::none, 0}},
    {"UBLKPF", {Space::none, Kind::none, 0}},
    {"SYNCS", {Space::none, Kind::none, 0}},
    {"ARRIVES", {Space::none, Kind::none, 0}},
    {"LDTM", {Space::none, Kind::none, 0}},
    {"STTM", {Space::none, Kind::none, 0}},
    {"UTCBAR", {Space::none, Kind::none, 0}},
    {"UTCATOMSWS", {Space::none, Kind::none, 0}},
};

// Textures and surfaces: the memory behind them is unknown here.
bool uses_texture(std::string_view name) {
    for (const std::string_view prefix : {"TEX", "TLD", "TMML", "TXD", "SUL", "SUS", "SUR", "SUA", "SUQ", "FOOTPRINT"})
        if (name.substr(0, prefix.size()) == prefix)
            return true;
    return false;
}

const Operand *memory_operand(const Instruction &instruction, int index) {
    for (const Operand &operand : instruction.operands)
        if (operand.kind == Operand::Kind::memory && index-- == 0)
            return &operand;
    return nullptr;
}

} // namespace

std::optional<MemoryUse> memory_use_of(const Instruction &instruction) {
    const auto found = meanings.find(instruction.name);
    if (found != meanings.end()) {
        const Meaning &meaning = found->second;
        const Operand *address = memory_operand(instruction, meaning.address);
        return MemoryUse{meaning.space, meaning.kind, address, meaning.to_shared,
                         meaning.unknown || (address == nullptr && meaning.space != Space::none)};
    }
    if (instruction.name == "UBLKCP") {
        // The modifiers name the target, then the source: G is global memory, S is shared memory.
        std::string_view target, source;
        for (const std::string_view modifier : instruction.modifiers) {
            if (modifier != "G" && modifier != "S")
                continue;
            (target.empty() ? target : source) = modifier;
        }
        if (target == "S" && source == "G" && memory_operand(instruction, 1) != nullptr)
            return MemoryUse{Space::any, Kind::read, memory_operand(instruction, 1), true, false};
        if (target == "G" && source == "S" && memory_operand(instruction, 0) != nullptr)
            return MemoryUse{Space::any, Kind::write, memory_operand(instruction, 0), false, false};
        if (target == "S" && source == "S")
            return MemoryUse{Space::none, Kind::none, nullptr, false, false};
        return MemoryUse{Space::any, Kind::both, memory_operand(instruction, 0), true, true};
    }
    if (uses_texture(instruction.name))
        return MemoryUse{Space::none, Kind::none, nullptr, false, true};
    if (const Operand *address = memory_operand(instruction, 0))
        return MemoryUse{Space::any, Kind::both, address, true, true};
    return std::nullopt;
}

unsigned width_of(const Instruction &instruction) {
    unsigned width = 32;
    for (const std::string_view modifier : instruction.modifiers) {
        if (modifier == "64" || modifier == "128" || modifier == "256")
            width = modifier == "64" ? 64 : modifier == "128" ? 128 : 256;
        else if (modifier == "U8" || modifier == "S8" || modifier == "8")
            width = 8;
        else if (modifier == "U16" || modifier == "S16" || modifier == "16")
            width = 16;
    }
    return width;
}

} // namespace tcuda::kernel_uses
