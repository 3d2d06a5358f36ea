// The conversion of numbers to the two floating-point types of 16 bits.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>

namespace tcuda {

// The bits of the nearest number of a type with `mantissa` bits after the point, and exponents from `least` to `most`.
// Ties go to the even number. Numbers beyond the largest become infinite.
inline std::uint16_t small_float(double number, int mantissa, int least, int most) {
    const int exponent_bits = 15 - mantissa;
    const std::uint16_t sign = std::signbit(number) ? 0x8000 : 0;
    const auto infinite = static_cast<std::uint16_t>(((1u << exponent_bits) - 1) << mantissa);
    if (std::isnan(number))
        return static_cast<std::uint16_t>(sign | infinite | 1u << (mantissa - 1));
    const double size = std::fabs(number);
    if (std::isinf(size))
        return sign | infinite;
    int exponent = 0;
    std::frexp(size, &exponent); // size < 2 ** exponent
    exponent = exponent - 1 < least || size == 0 ? least : exponent - 1;
    // The number of steps from 2 ** exponent, or from 0 below the normal numbers. std::nearbyint() rounds to even.
    const double steps = std::nearbyint(std::ldexp(size, mantissa - exponent));
    const auto bits = static_cast<std::uint32_t>(steps) + (static_cast<std::uint32_t>(exponent - least) << mantissa);
    const std::uint32_t largest = (static_cast<std::uint32_t>(most - least + 2) << mantissa) - 1;
    return static_cast<std::uint16_t>(sign | (bits > largest ? infinite : bits));
}

inline std::uint16_t half_bits(double number) { return small_float(number, 10, -14, 15); }
inline std::uint16_t bfloat16_bits(double number) { return small_float(number, 7, -126, 127); }

} // namespace tcuda
