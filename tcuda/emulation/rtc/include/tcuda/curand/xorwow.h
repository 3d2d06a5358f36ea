// XORWOW: a xorshift generator with 160 bits, and a Weyl sequence that is added to its numbers.
// After G. Marsaglia, "Xorshift RNGs", Journal of Statistical Software 8 (2003). The seeds are cuRAND's.
#pragma once

#include "tcuda/device.h"

struct curandStateXORWOW {
    using tcuda_random_state = curandStateXORWOW;
    unsigned int d, v[5];
    int boxmuller_flag, boxmuller_flag_double;
    float boxmuller_extra;
    unsigned int padding;
    double boxmuller_extra_double;
};

namespace tcuda {
namespace curand {

// Polynomials over the field of two elements, of a degree below 160: bit i of the words is the coefficient of x^i.
struct Polynomial {
    unsigned int words[5];
};

// The characteristic polynomial of a step of the 160 bits, without its highest term.
constexpr Polynomial of_step = {{0x00060001u, 0x08610030u, 0x00062121u, 0x0f3c0035u, 0x00000f0eu}};

constexpr unsigned int xorwow_sequence = 67;  // A subsequence has 2^67 numbers.

constexpr Polynomial times_x(Polynomial a) {
    const bool carry = a.words[4] >> 31;
    for (int i = 4; i > 0; --i) a.words[i] = a.words[i] << 1 | a.words[i - 1] >> 31;
    a.words[0] <<= 1;
    if (carry)
        for (int i = 0; i < 5; ++i) a.words[i] ^= of_step.words[i];
    return a;
}

constexpr Polynomial squared(const Polynomial &a) {
    Polynomial result = {{}};
    for (int i = 159; i >= 0; --i) {
        result = times_x(times_x(result));
        if (a.words[i / 32] >> i % 32 & 1)
            result.words[0] ^= 1;
    }
    return result;
}

// x^(2^k) for every k that a number of numbers or of subsequences can need.
struct Jumps {
    Polynomial of[xorwow_sequence + 64];
};

constexpr Jumps all_jumps() {
    Jumps jumps = {};
    jumps.of[0].words[0] = 2;
    for (unsigned int k = 1; k < xorwow_sequence + 64; ++k) jumps.of[k] = squared(jumps.of[k - 1]);
    return jumps;
}

inline TCUDA_UNSANITIZED void step(unsigned int *v) {
    const unsigned int t = v[0] ^ v[0] >> 2;
    for (int i = 0; i < 4; ++i) v[i] = v[i + 1];
    v[4] ^= v[4] << 4 ^ t ^ t << 1;
}

// Takes `count` steps of 2^first numbers. A power of the matrix of a step is the polynomial x^n, of which the remainder
// by the characteristic polynomial has 160 terms.
inline TCUDA_UNSANITIZED void jump(unsigned int *v, unsigned long long count, unsigned int first) {
    static constexpr Jumps jumps = all_jumps();
    for (; count != 0; count >>= 1, ++first) {
        if (!(count & 1))
            continue;
        unsigned int sum[5] = {};
        for (int i = 0; i < 160; ++i) {
            const unsigned int chosen = -(jumps.of[first].words[i / 32] >> i % 32 & 1);
            for (int k = 0; k < 5; ++k) sum[k] ^= v[k] & chosen;
            step(v);
        }
        for (int k = 0; k < 5; ++k) v[k] = sum[k];
    }
}

inline TCUDA_UNSANITIZED void skip(curandStateXORWOW &s, unsigned long long count) {
    jump(s.v, count, 0);
    s.d += 362437u * static_cast<unsigned int>(count);
}
inline TCUDA_UNSANITIZED void skip_sequence(curandStateXORWOW &s, unsigned long long count) {
    jump(s.v, count, xorwow_sequence);
}

inline TCUDA_UNSANITIZED void start(curandStateXORWOW &s, unsigned long long seed, unsigned long long sequence,
                                    unsigned long long offset) {
    const unsigned int low = 1099087573u * (static_cast<unsigned int>(seed) ^ 0xaad26b49u);
    const unsigned int high = 2591861531u * (static_cast<unsigned int>(seed >> 32) ^ 0xf7dcefddu);
    s = {6615241u + high + low,
         {123456789u + low, 362436069u ^ low, 521288629u + high, 88675123u ^ high, 5783321u + low},
         0,
         0,
         0,
         0,
         0};
    skip_sequence(s, sequence);
    skip(s, offset);
}

inline TCUDA_UNSANITIZED unsigned int next(curandStateXORWOW &s) {
    step(s.v);
    s.d += 362437u;
    return s.v[4] + s.d;
}

}  // namespace curand
}  // namespace tcuda
