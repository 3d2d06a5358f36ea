// A parameter of a kernel.
#pragma once

#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

namespace tcuda {

// The kinds of parameters. Python uses the same letters.
enum class ParameterKind : char {
    pointer = 'p',
    signed_integer = 'i',
    unsigned_integer = 'u',
    floating = 'f', // half, float or double
    bfloat16 = 'g',
    boolean = 'b',
    structure = 's',
};

struct Parameter {
    ParameterKind kind;
    std::uint32_t size, offset; // in bytes; the offset counts from the start of the buffer of all arguments
};

// Throws std::invalid_argument if no parameter of that kind has that size.
inline Parameter checked_parameter(char kind, std::uint32_t size, std::uint32_t offset) {
    const bool power = size != 0 && (size & (size - 1)) == 0;
    bool valid = false;
    switch (static_cast<ParameterKind>(kind)) {
    case ParameterKind::pointer:
        valid = size == 8;
        break;
    case ParameterKind::signed_integer:
    case ParameterKind::unsigned_integer:
        valid = power && size <= 8;
        break;
    case ParameterKind::floating:
        valid = size == 2 || size == 4 || size == 8;
        break;
    case ParameterKind::bfloat16:
        valid = size == 2;
        break;
    case ParameterKind::boolean:
        valid = size == 1;
        break;
    case ParameterKind::structure:
        valid = size != 0;
        break;
    }
    if (!valid)
        throw std::invalid_argument("no parameter of a kernel has the kind '" + std::string(1, kind) + "' and " +
                                    std::to_string(size) + " bytes");
    return {static_cast<ParameterKind>(kind), size, offset};
}

// The type of a parameter, for messages.
inline std::string type_of(const Parameter &parameter) {
    const std::string bits = std::to_string(parameter.size * 8);
    switch (parameter.kind) {
    case ParameterKind::pointer:
        return "a pointer";
    case ParameterKind::signed_integer:
        return "int" + bits;
    case ParameterKind::unsigned_integer:
        return "uint" + bits;
    case ParameterKind::floating:
        return "float" + bits;
    case ParameterKind::bfloat16:
        return "bfloat16";
    case ParameterKind::boolean:
        return "bool";
    default:
        return "a struct of " + std::to_string(parameter.size) + " bytes";
    }
}

} // namespace tcuda
