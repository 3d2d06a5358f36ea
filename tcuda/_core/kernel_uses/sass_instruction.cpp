#include "kernel_uses/sass_instruction.hpp"

#include <algorithm>

#include "kernel_uses/words.hpp"

namespace tcuda::kernel_uses {
namespace {

constexpr std::size_t most_operands = 32;

bool take(std::string_view &text, std::string_view prefix) {
    if (text.substr(0, prefix.size()) != prefix)
        return false;
    text.remove_prefix(prefix.size());
    return true;
}

// Takes decimal digits, or 0x and hexadecimal digits.
std::optional<std::int64_t> take_number(std::string_view &text) {
    std::string_view rest = text;
    const bool negative = take(rest, "-");
    const int base = take(rest, "0x") ? 16 : 10;
    std::uint64_t value = 0;
    std::size_t digits = 0;
    for (; digits < rest.size() && digits < 19; ++digits) {
        const char c = rest[digits];
        const int digit = c >= '0' && c <= '9' ? c - '0' : base == 16 && c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
        if (digit < 0)
            break;
        value = value * std::uint64_t(base) + std::uint64_t(digit);
    }
    if (digits == 0)
        return std::nullopt;
    text = rest.substr(digits);
    return std::int64_t(negative ? 0 - value : value);
}

std::optional<std::int64_t> whole_number(std::string_view text) {
    const auto value = take_number(text);
    return text.empty() ? value : std::nullopt;
}

std::optional<Predicate> read_predicate(std::string_view text) {
    Predicate predicate;
    predicate.negated = take(text, "!");
    const bool uniform = take(text, "U");
    if (!take(text, "P") || text.size() != 1)
        return std::nullopt;
    if (text[0] >= '0' && text[0] <= '7')
        predicate.number = std::uint8_t(text[0] - '0' + (uniform ? Predicate::uniform : 0));
    else if (text[0] != 'T')
        return std::nullopt;
    return predicate;
}

// R4, R4.reuse, R4.64, UR6, RZ, R0.X4, R2.U32
std::optional<Register> read_register(std::string_view text) {
    Register found;
    const bool uniform = take(text, "U");
    if (!take(text, "R"))
        return std::nullopt;
    if (!take(text, "Z")) {
        if (text.empty() || text[0] < '0' || text[0] > '9')
            return std::nullopt;
        const auto number = take_number(text);
        if (!number || *number > 254)
            return std::nullopt;
        found.number = std::uint16_t(*number + (uniform ? Register::uniform : 0));
    }
    if (!text.empty() && text[0] != '.')
        return std::nullopt;
    while (take(text, ".")) {
        const std::string_view suffix = text.substr(0, text.find('.'));
        text.remove_prefix(suffix.size());
        if (suffix == "64")
            found.wide = true;
        else if (suffix == "U32" || suffix == "S32" || (suffix.size() > 1 && suffix[0] == 'X'))
            found.offset = true;
    }
    return text.empty() ? std::optional(found) : std::nullopt;
}

// The terms between brackets: registers and one offset. False if there is something else.
bool read_terms(std::string_view text, Operand &operand) {
    while (!text.empty()) {
        take(text, "+");
        const std::size_t end = std::min(text.find('+', 1), text.size());
        const std::string_view term = trimmed(text.substr(0, end));
        text.remove_prefix(end);
        if (const auto found = read_register(term))
            operand.registers.push_back(*found);
        else if (const auto number = whole_number(term))
            operand.number += *number;
        else
            return false;
    }
    return true;
}

Operand read_operand(std::string_view text) {
    Operand operand;
    operand.text = text;
    if (const auto predicate = read_predicate(text)) {
        operand.kind = Operand::Kind::predicate;
        operand.predicate = *predicate;
        return operand;
    }
    if (take(text, "`(")) {
        operand.kind = Operand::Kind::label;
        operand.text = trimmed(text.substr(0, text.rfind(')')));
        return operand;
    }
    if (const auto number = whole_number(text)) {
        operand.kind = Operand::Kind::immediate;
        operand.number = *number;
        return operand;
    }
    operand.negated = take(text, "-") || take(text, "~");
    if (take(text, "|") && !text.empty())
        text = text.substr(0, text.find('|'));
    if (const auto found = read_register(text)) {
        operand.kind = Operand::Kind::general;
        operand.registers.push_back(*found);
        return operand;
    }
    const std::size_t last = text.rfind('['), end = text.rfind(']');
    if (last == text.npos || end == text.npos || end < last)
        return operand;
    const std::string_view front = text.substr(0, last), inside = text.substr(last + 1, end - last - 1);
    if (front.empty() || front.substr(0, 5) == "desc[") {
        // An address that cannot be read is an address without registers: nothing is known of it.
        operand.kind = Operand::Kind::memory;
        if (!read_terms(inside, operand))
            operand.registers.clear();
    } else if (front.substr(0, 2) == "c[" || front.substr(0, 3) == "cx[") {
        operand.kind = Operand::Kind::constant;
        const auto bank = whole_number(front.substr(front.find('[') + 1, front.size() - front.find('[') - 2));
        operand.bank =
            bank && front[1] == '[' && *bank >= 0 && *bank < 32 ? std::uint32_t(*bank) : Operand::unknown_bank;
        if (!read_terms(inside, operand))
            operand.bank = Operand::unknown_bank;
    }
    return operand;
}

// Calls `use` with each part of the text between commas that stand in no brackets.
template <typename Use> void each_operand(std::string_view text, Use use) {
    int depth = 0;
    std::size_t begin = 0;
    for (std::size_t i = 0; i <= text.size(); ++i) {
        if (i == text.size() || (text[i] == ',' && depth == 0)) {
            const std::string_view part = trimmed(text.substr(begin, i - begin));
            if (!part.empty())
                use(part);
            begin = i + 1;
        } else if (text[i] == '[' || text[i] == '(') {
            ++depth;
        } else if ((text[i] == ']' || text[i] == ')') && depth > 0) {
            --depth;
        }
    }
}

} // namespace

bool Instruction::has(std::string_view modifier) const {
    return std::find(modifiers.begin(), modifiers.end(), modifier) != modifiers.end();
}

std::optional<Instruction> read_instruction(std::string_view line) {
    Instruction found;
    line = trimmed(line);
    if (!take(line, "/*"))
        return std::nullopt;
    std::string_view digits = line.substr(0, line.find("*/"));
    if (digits.size() == line.size() || digits.empty() || digits.size() > 12)
        return std::nullopt;
    line.remove_prefix(digits.size() + 2);
    for (const char c : digits) {
        const int digit = c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
        if (digit < 0)
            return std::nullopt;
        found.address = found.address * 16 + std::uint64_t(digit);
    }
    line = trimmed(line);
    if (const std::size_t begin = line.find("BRANCH_TARGETS"); begin != line.npos) {
        std::string_view targets = line.substr(begin + 14);
        targets = targets.substr(0, targets.find('"'));
        each_operand(targets, [&](std::string_view label) { found.targets.push_back(label); });
    }
    line = trimmed(line.substr(0, std::min(line.find(';'), line.find("(*"))));
    if (!line.empty() && line[0] == '{') // two instructions that are issued together
        line = trimmed(line.substr(1));
    if (take(line, "@")) {
        const std::size_t end = line.find_first_of(blanks);
        found.guard = read_predicate(line.substr(0, end));
        if (!found.guard || end == line.npos)
            return found;
        line = trimmed(line.substr(end));
    }
    std::string_view name = line.substr(0, line.find_first_of(blanks));
    const std::string_view rest = line.substr(name.size());
    if (name.empty() || name[0] < 'A' || name[0] > 'Z')
        return found;
    found.name = name.substr(0, name.find('.'));
    name.remove_prefix(found.name.size());
    while (take(name, ".")) {
        found.modifiers.push_back(name.substr(0, name.find('.')));
        name.remove_prefix(found.modifiers.back().size());
    }
    each_operand(rest, [&](std::string_view operand) {
        if (found.operands.size() < most_operands)
            found.operands.push_back(read_operand(operand));
    });
    return found;
}

} // namespace tcuda::kernel_uses
