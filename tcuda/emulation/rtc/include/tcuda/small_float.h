// The bits of floating-point numbers of two bytes: conversions with one exact rounding.
#pragma once

#include "tcuda/conversions.h"

namespace tcuda {

enum class Rounding { nearest, toward_zero, upward, downward };

template <int mantissa, int bias>
inline unsigned short encoded(double value, Rounding rounding) {
    unsigned long long bits = reinterpret<unsigned long long>(value);
    unsigned int sign = static_cast<unsigned int>(bits >> 63) << 15;
    unsigned int infinity = static_cast<unsigned int>(2 * bias + 1) << mantissa;
    bits &= ~0ull >> 1;
    if (bits > 0x7ffull << 52) return 0x7fff;
    if (bits == 0x7ffull << 52) return static_cast<unsigned short>(sign | infinity);
    if (bits == 0) return static_cast<unsigned short>(sign);
    int exponent = static_cast<int>(bits >> 52) - 1023, lowest = 1 - bias;
    unsigned long long digits = (bits & ~0ull >> 12) | 1ull << 52;
    int shift = 52 - mantissa + (exponent < lowest ? lowest - exponent : 0);
    if (shift > 63) shift = 63;
    unsigned long long kept = digits >> shift, rest = digits & ((1ull << shift) - 1), half = 1ull << (shift - 1);
    bool away = rounding == Rounding::nearest ? rest > half || (rest == half && kept & 1)
                                              : rest != 0 && rounding == (sign ? Rounding::downward : Rounding::upward);
    unsigned long long result = kept + away;
    if (exponent >= lowest) result += static_cast<unsigned long long>(exponent + bias - 1) << mantissa;
    if (result >= infinity) {
        bool finite = rounding == Rounding::toward_zero || rounding == (sign ? Rounding::upward : Rounding::downward);
        result = infinity - finite;
    }
    return static_cast<unsigned short>(sign | result);
}

template <int mantissa, int bias>
inline float decoded(unsigned short stored) {
    unsigned int sign = static_cast<unsigned int>(stored & 0x8000) << 16, bits = stored & 0x7fff;
    unsigned int infinity = static_cast<unsigned int>(2 * bias + 1) << mantissa;
    if (bias == 127) return reinterpret<float>(static_cast<unsigned int>(stored) << 16);
    if (bits >= infinity) return reinterpret<float>(sign | 0x7f800000u | (bits - infinity) << (23 - mantissa));
    if (bits >> mantissa) return reinterpret<float>(sign | ((bits << (23 - mantissa)) + (static_cast<unsigned int>(127 - bias) << 23)));
    float magnitude = static_cast<float>(bits) * reinterpret<float>(static_cast<unsigned int>(127 + 1 - bias - mantissa) << 23);
    return sign ? -magnitude : magnitude;
}

// A double that rounds to the same short number as the integer. The last bit of the double is set if bits were lost.
inline double rounded_to_odd(unsigned long long magnitude) {
    if (magnitude >> 53 == 0) return static_cast<double>(magnitude);
    return 2048.0 * static_cast<double>(magnitude >> 11 | ((magnitude & 2047) != 0));
}
template <class Integer>
inline double exact(Integer value) {
    if (value < 0) return -rounded_to_odd(0 - static_cast<unsigned long long>(value));
    return rounded_to_odd(static_cast<unsigned long long>(value));
}

inline float positive_part(double value) {
    return value > 0 ? static_cast<float>(value) : value != value ? __builtin_nanf("") : 0.0f;
}

}  // namespace tcuda
