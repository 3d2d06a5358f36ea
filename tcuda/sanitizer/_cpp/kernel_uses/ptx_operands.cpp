#include "sanitizer/_cpp/kernel_uses/ptx_operands.hpp"

namespace tcuda::kernel_uses::ptx {
namespace {

std::int64_t added(std::int64_t left, std::int64_t right) {
    return static_cast<std::int64_t>(static_cast<std::uint64_t>(left) + static_cast<std::uint64_t>(right));
}

std::int64_t negated(std::int64_t number) { return static_cast<std::int64_t>(0 - static_cast<std::uint64_t>(number)); }

bool is_word(std::string_view word) {
    const auto is_letter = [](char sign) {
        return (sign >= 'A' && sign <= 'Z') || (sign >= 'a' && sign <= 'z') || sign == '_';
    };
    return word.size() > 1 || (word.size() == 1 && is_letter(word[0]));
}

} // namespace

Operand OperandReader::read_operand(Function &function, std::size_t depth) {
    Operand operand;
    const bool is_negated = tokens_.take('!');
    if (depth > 4) {
        tokens_.next();
        return operand;
    }
    if (tokens_.is('{'))
        return read_vector(function, depth);
    if (tokens_.take('[')) {
        operand = read_sum(function);
        operand.is_address = true;
        while (!tokens_.at_end() && !tokens_.is(']') && !tokens_.is(';') && !tokens_.is('}')) {
            if (tokens_.is('{'))
                tokens_.skip_group(); // coordinates
            else
                tokens_.next();
        }
        tokens_.take(']');
        return operand;
    }
    operand = read_sum(function);
    operand.is_negated = is_negated;
    return operand;
}

void OperandReader::read_list(Function &function, std::vector<Operand> &operands) {
    tokens_.take('(');
    while (!tokens_.at_end() && !tokens_.is(')') && !tokens_.is(';') && !tokens_.is('}')) {
        operands.push_back(read_operand(function));
        if (!tokens_.take(',') && !tokens_.is(')'))
            tokens_.next();
    }
    tokens_.take(')');
}

Operand OperandReader::read_vector(Function &function, std::size_t depth) {
    Operand operand;
    operand.kind = Operand::Kind::vector;
    std::vector<Operand> elements;
    tokens_.take('{');
    while (!tokens_.at_end() && !tokens_.is('}') && !tokens_.is(';')) {
        elements.push_back(read_operand(function, depth + 1));
        if (!tokens_.take(',') && !tokens_.is('}') && !tokens_.is(';'))
            tokens_.next();
    }
    tokens_.take('}');
    operand.index = static_cast<std::uint32_t>(function.elements.size());
    operand.count = static_cast<std::uint32_t>(elements.size());
    function.elements.insert(function.elements.end(), elements.begin(), elements.end());
    return operand;
}

Operand OperandReader::read_sum(Function &function) {
    bool is_negative = tokens_.take('-');
    if (tokens_.is("generic")) { // the generic address of a variable
        tokens_.next();
        if (tokens_.take('(')) {
            Operand operand = read_sum(function);
            tokens_.take(')');
            return operand;
        }
    }
    Operand operand;
    std::int64_t number = 0;
    if (integer_of(tokens_.current(), number)) {
        operand.kind = Operand::Kind::number;
        operand.offset = is_negative ? negated(number) : number;
        tokens_.next();
    } else if (is_word(tokens_.current())) {
        operand = scopes_.resolved(function, tokens_.current());
        tokens_.next();
    } else {
        return operand; // the caller goes on behind a sign that fits nowhere
    }
    while (tokens_.is('+') || tokens_.is('-')) {
        is_negative = tokens_.is('-');
        tokens_.next();
        if (tokens_.take('-'))
            is_negative = !is_negative;
        if (!integer_of(tokens_.current(), number))
            break;
        tokens_.next();
        operand.offset = added(operand.offset, is_negative ? negated(number) : number);
    }
    return operand;
}

} // namespace tcuda::kernel_uses::ptx
