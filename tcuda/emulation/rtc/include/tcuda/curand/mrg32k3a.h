// MRG32k3a: the difference of two multiple recursive generators of order three.
// After P. L'Ecuyer, "Good Parameters and Implementations for Combined Multiple Recursive Random Number Generators",
// Operations Research 47 (1999). The seeds are cuRAND's.
#pragma once

#include "tcuda/device.h"

struct curandStateMRG32k3a {
    using tcuda_random_state = curandStateMRG32k3a;
    unsigned int s1[3], s2[3];
    int boxmuller_flag, boxmuller_flag_double;
    float boxmuller_extra;
    unsigned int padding;
    double boxmuller_extra_double;
};

namespace tcuda {
namespace curand {

constexpr unsigned long long first_modulus = 4294967087ull, second_modulus = 4294944443ull;

struct Matrix {
    unsigned long long at[3][3];
};

constexpr Matrix first_step = {{{0, 1, 0}, {0, 0, 1}, {first_modulus - 810728, 1403580, 0}}};
constexpr Matrix second_step = {{{0, 1, 0}, {0, 0, 1}, {second_modulus - 1370589, 0, 527612}}};

constexpr TCUDA_UNSANITIZED Matrix product(const Matrix &a, const Matrix &b, unsigned long long modulus) {
    Matrix result = {};
    for (int i = 0; i < 3; ++i)
        for (int j = 0; j < 3; ++j)
            for (int k = 0; k < 3; ++k) result.at[i][j] = (result.at[i][j] + a.at[i][k] * b.at[k][j] % modulus) % modulus;
    return result;
}

// The matrix of 2^exponent steps.
constexpr TCUDA_UNSANITIZED Matrix steps(Matrix a, unsigned int exponent, unsigned long long modulus) {
    for (; exponent != 0; --exponent) a = product(a, a, modulus);
    return a;
}

inline TCUDA_UNSANITIZED void apply(unsigned int *state, Matrix a, unsigned long long count,
                                    unsigned long long modulus) {
    for (; count != 0; count >>= 1) {
        if (count & 1) {
            unsigned int moved[3];
            for (int i = 0; i < 3; ++i) {
                unsigned long long sum = 0;
                for (int k = 0; k < 3; ++k) sum += a.at[i][k] * state[k] % modulus;
                moved[i] = static_cast<unsigned int>(sum % modulus);
            }
            for (int i = 0; i < 3; ++i) state[i] = moved[i];
        }
        if (count != 1)
            a = product(a, a, modulus);
    }
}

template <unsigned int exponent>
inline TCUDA_UNSANITIZED void skip_powers(curandStateMRG32k3a &s, unsigned long long count) {
    static constexpr Matrix first = steps(first_step, exponent, first_modulus);
    static constexpr Matrix second = steps(second_step, exponent, second_modulus);
    apply(s.s1, first, count, first_modulus);
    apply(s.s2, second, count, second_modulus);
}
inline TCUDA_UNSANITIZED void skip(curandStateMRG32k3a &s, unsigned long long count) {
    skip_powers<0>(s, count);
}
inline TCUDA_UNSANITIZED void skip_subsequence(curandStateMRG32k3a &s, unsigned long long count) {
    skip_powers<76>(s, count);
}
inline TCUDA_UNSANITIZED void skip_sequence(curandStateMRG32k3a &s, unsigned long long count) {
    skip_powers<127>(s, count);
}

inline TCUDA_UNSANITIZED void start(curandStateMRG32k3a &s, unsigned long long seed, unsigned long long subsequence,
                                    unsigned long long offset) {
    s = {{12345, 12345, 12345}, {12345, 12345, 12345}, 0, 0, 0, 0, 0};
    if (seed != 0) {
        const unsigned long long low = static_cast<unsigned int>(seed) ^ 0x55555555u;
        const unsigned long long high = static_cast<unsigned int>(seed >> 32) ^ 0xaaaaaaaau;
        for (int i = 0; i < 3; ++i) {
            s.s1[i] = static_cast<unsigned int>((i == 1 ? high : low) * s.s1[i] % first_modulus);
            s.s2[i] = static_cast<unsigned int>((i == 1 ? low : high) * s.s2[i] % second_modulus);
        }
    }
    skip_subsequence(s, subsequence);
    skip(s, offset);
}

// A whole number from 1 to the first modulus.
inline TCUDA_UNSANITIZED double next_number(curandStateMRG32k3a &s) {
    const unsigned long long first =
        (1403580ull * s.s1[1] + (first_modulus - 810728ull) * s.s1[0] % first_modulus) % first_modulus;
    const unsigned long long second =
        (527612ull * s.s2[2] + (second_modulus - 1370589ull) * s.s2[0] % second_modulus) % second_modulus;
    s.s1[0] = s.s1[1], s.s1[1] = s.s1[2], s.s1[2] = static_cast<unsigned int>(first);
    s.s2[0] = s.s2[1], s.s2[1] = s.s2[2], s.s2[2] = static_cast<unsigned int>(second);
    return static_cast<double>(first > second ? first - second : first + first_modulus - second);
}

// The number, stretched to 32 bits.
inline TCUDA_UNSANITIZED unsigned int next(curandStateMRG32k3a &s) {
    const auto stretched = static_cast<unsigned long long>(next_number(s) * 1.000000048662);
    return stretched > 0xffffffffull ? 0xffffffffu : static_cast<unsigned int>(stretched);
}

}  // namespace curand
}  // namespace tcuda
