#include "kernel_uses/sass_thread.hpp"

#include <algorithm>

namespace tcuda::kernel_uses {
namespace {

constexpr std::size_t barriers = 16;

bool is_value(const Operand &operand) {
    return operand.kind == Operand::Kind::general || operand.kind == Operand::Kind::immediate ||
           operand.kind == Operand::Kind::constant || operand.kind == Operand::Kind::other;
}

} // namespace

SassThread::SassThread(const SassListing &listing, const ParameterBlock &block)
    : listing_(listing), parameters_(block, listing.architecture), general_(listing.general_registers),
      uniform_(listing.uniform_registers) {}

SassState SassThread::start() const {
    SassState start;
    start.registers.resize(general_ + uniform_ + barriers);
    return start;
}

void SassThread::begin_block(const SassState &state) { registers_ = std::make_unique<SassRegisters>(state); }

std::optional<std::uint16_t> SassThread::barrier_of(const Operand &operand) const {
    const std::string_view name = operand.text;
    if (operand.kind != Operand::Kind::other || name.size() < 2 || name.size() > 3 || name[0] != 'B')
        return std::nullopt;
    std::size_t number = 0;
    for (const char c : name.substr(1)) {
        if (c < '0' || c > '9')
            return std::nullopt;
        number = number * 10 + std::size_t(c - '0');
    }
    if (number >= barriers)
        return std::nullopt;
    return std::uint16_t(general_ + uniform_ + number);
}

std::uint16_t SassThread::place(std::uint16_t number) const {
    if (number < Register::uniform)
        return number < general_ ? number : Register::zero;
    const std::size_t uniform = number - Register::uniform;
    return number != Register::zero && uniform < uniform_ ? std::uint16_t(general_ + uniform) : Register::zero;
}

SassValue SassThread::read(std::uint16_t number, unsigned half) {
    if (number == Register::zero)
        return {0, 0, true};
    return read_at(place(std::uint16_t(number + half)));
}

SassValue SassThread::constant(const Operand &operand, std::int64_t further) {
    bool indexed = false;
    std::int64_t offset = operand.number + further;
    for (const Register &index : operand.registers) {
        const SassValue found = read(index.number, 0);
        if (found.known && found.origins == 0)
            offset += found.constant;
        else
            indexed = true;
    }
    if (operand.bank == 0 && indexed && parameters_.far_below(offset))
        return {sets_.single(module_memory), 0, false};
    if (operand.bank == 0 && indexed)
        return {sets_.single(parameters_.in_member(offset) ? member_word : any_word), 0, false};
    if (operand.bank == 0)
        return parameters_.bank_value(sets_, offset);
    if (operand.bank == 4)
        return {sets_.single(module_memory), indexed ? 0 : std::int32_t(offset), !indexed};
    // Banks 1 and 2 hold what the compiler puts there, bank 3 what the program puts there.
    return {operand.bank < 3 ? 0 : sets_.single(wide_load), 0, false};
}

SassValue SassThread::value(const Operand &operand, unsigned half) {
    switch (operand.kind) {
    case Operand::Kind::general:
        return read(operand.registers[0].number, half);
    case Operand::Kind::immediate:
        return {0, std::int32_t(std::uint64_t(operand.number) >> 32 * half), true};
    case Operand::Kind::constant:
        return constant(operand, 4 * half);
    case Operand::Kind::other:
        return {names_variable(operand.text) ? sets_.single(module_memory) : 0, 0, false};
    default:
        return {};
    }
}

// 32@lo(name), 32@hi(name): half of the address of a variable of the module, or of a place in the code.
bool SassThread::names_variable(std::string_view text) const {
    if (text.substr(0, 6) != "32@lo(" && text.substr(0, 6) != "32@hi(")
        return false;
    text.remove_prefix(6);
    const std::string_view name = text.substr(0, text.find_first_of(" )"));
    return !name.empty() && name[0] != '(' && listing_.labels.find(name) == listing_.labels.end();
}

// An address is the sum of one pointer and of numbers. Where the pointer is known, the other terms are numbers.
SassValue SassThread::sum(const std::vector<Term> &terms) {
    bool address = false, word = false;
    for (const Term &term : terms) {
        if (term.negated)
            continue;
        const auto &members = sets_.members(term.value.origins);
        address =
            address || (!members.empty() && std::all_of(members.begin(), members.end(), [&](std::uint32_t origin) {
                return origin == module_memory || origin == own_memory || origin == block_address ||
                       parameters_.marked(origin);
            }));
        word = word || std::any_of(members.begin(), members.end(), [&](std::uint32_t origin) {
                   return origin >= first_word && !parameters_.plain(origin);
               });
    }
    SassValue total{0, 0, true};
    std::size_t bases = 0;
    std::uint32_t constant = 0;
    for (const Term &term : terms) {
        total.known = total.known && term.value.known;
        constant += std::uint32_t(term.value.constant) * (term.negated ? ~0u : 1u);
        if (term.value.origins == 0)
            continue;
        bases += term.negated ? 2 : 1;
        if (term.negated)
            continue;
        total.origins = sets_.joined(total.origins, sets_.filtered(term.value.origins, [&](std::uint32_t origin) {
            const auto &members = sets_.members(term.value.origins);
            // A set that is itself an address keeps its members.
            const bool mixed = std::any_of(members.begin(), members.end(), [&](std::uint32_t other) {
                return other >= first_word && !parameters_.plain(other);
            });
            if (mixed)
                return true;
            if (address && (origin == wide_load || origin == narrow_load || parameters_.plain(origin)))
                return false;
            return !(word && origin == narrow_load);
        }));
    }
    total.constant = std::int32_t(constant);
    total.known = total.known && bases <= 1;
    if (!total.known)
        total.constant = 0;
    return total;
}

const Operand *SassThread::target_of(const Instruction &instruction, std::vector<const Operand *> &sources) {
    const Operand *target = nullptr;
    bool first = true;
    for (const Operand &operand : instruction.operands) {
        if (first && operand.kind == Operand::Kind::predicate)
            continue;
        if (first && operand.kind == Operand::Kind::general)
            target = &operand;
        else if (is_value(operand))
            sources.push_back(&operand);
        first = false;
    }
    return target;
}

void SassThread::write(const Operand *target, unsigned piece, SassValue value) {
    if (target == nullptr || target->registers[0].number == Register::zero)
        return;
    write_at(place(std::uint16_t(target->registers[0].number + piece)), value);
}

void SassThread::write_number(const Instruction &instruction) {
    std::vector<const Operand *> sources;
    write(target_of(instruction, sources), 0, {});
}

SassValue SassThread::all(const std::vector<const Operand *> &sources, unsigned half) {
    SassValue found{};
    for (const Operand *source : sources)
        found.origins = sets_.joined(found.origins, value(*source, half).origins);
    return found;
}

void SassThread::forget_predicates(const Instruction &instruction) {
    if (instruction.name == "R2P" || instruction.name == "UR2UP" || instruction.name == "R2UP")
        for (std::uint8_t predicate = 0; predicate < 16; ++predicate)
            registers_->forget(sets_, predicate);
    for (const Operand &operand : instruction.operands)
        if (operand.kind == Operand::Kind::predicate && operand.predicate.number != Predicate::always &&
            !operand.predicate.negated)
            registers_->forget(sets_, operand.predicate.number);
}

} // namespace tcuda::kernel_uses
