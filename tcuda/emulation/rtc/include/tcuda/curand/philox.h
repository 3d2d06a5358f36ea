// Philox4x32-10: ten rounds of multiplications turn a counter and a key into four numbers.
// After J. Salmon and others, "Parallel Random Numbers: As Easy as 1, 2, 3" (SC 2011).
#pragma once

#include "tcuda/device.h"

struct curandStatePhilox4_32_10 {
    using tcuda_random_state = curandStatePhilox4_32_10;
    uint4 ctr, output;
    uint2 key;
    unsigned int STATE;
    int boxmuller_flag, boxmuller_flag_double;
    float boxmuller_extra;
    double boxmuller_extra_double;
};

namespace tcuda {
namespace curand {

inline TCUDA_UNSANITIZED void draw(curandStatePhilox4_32_10 &s) {
    uint4 c = s.ctr;
    uint2 k = s.key;
    for (int round = 0; round < 10; ++round, k.x += 0x9e3779b9u, k.y += 0xbb67ae85u) {
        const unsigned long long a = 0xd2511f53ull * c.x, b = 0xcd9e8d57ull * c.z;
        c = {static_cast<unsigned int>(b >> 32) ^ c.y ^ k.x, static_cast<unsigned int>(b),
             static_cast<unsigned int>(a >> 32) ^ c.w ^ k.y, static_cast<unsigned int>(a)};
    }
    s.output = c;
}

inline TCUDA_UNSANITIZED void add(unsigned int &low, unsigned int &high, unsigned long long count, bool *carry) {
    const unsigned long long before = static_cast<unsigned long long>(high) << 32 | low, sum = before + count;
    low = static_cast<unsigned int>(sum);
    high = static_cast<unsigned int>(sum >> 32);
    *carry = sum < before;
}

// The upper half of the counter is the number of the subsequence.
inline TCUDA_UNSANITIZED void skip_sequence(curandStatePhilox4_32_10 &s, unsigned long long count) {
    bool carry;
    add(s.ctr.z, s.ctr.w, count, &carry);
    draw(s);
}
inline TCUDA_UNSANITIZED void advance(curandStatePhilox4_32_10 &s, unsigned long long count) {
    bool carry;
    add(s.ctr.x, s.ctr.y, count, &carry);
    if (carry)
        add(s.ctr.z, s.ctr.w, 1, &carry);
    draw(s);
}
inline TCUDA_UNSANITIZED void skip(curandStatePhilox4_32_10 &s, unsigned long long count) {
    const unsigned int place = s.STATE + static_cast<unsigned int>(count & 3);
    s.STATE = place & 3;
    advance(s, count / 4 + place / 4);
}

inline TCUDA_UNSANITIZED void start(curandStatePhilox4_32_10 &s, unsigned long long seed, unsigned long long sequence,
                                    unsigned long long offset) {
    s = {{}, {}, {static_cast<unsigned int>(seed), static_cast<unsigned int>(seed >> 32)}, 0, 0, 0, 0, 0};
    skip_sequence(s, sequence);
    skip(s, offset);
}

inline TCUDA_UNSANITIZED unsigned int next(curandStatePhilox4_32_10 &s) {
    const unsigned int numbers[4] = {s.output.x, s.output.y, s.output.z, s.output.w};
    const unsigned int result = numbers[s.STATE++ & 3];
    if (s.STATE == 4) {
        s.STATE = 0;
        advance(s, 1);
    }
    return result;
}
inline TCUDA_UNSANITIZED uint4 next4(curandStatePhilox4_32_10 &s) {
    const unsigned int x = next(s), y = next(s), z = next(s);
    return {x, y, z, next(s)};
}

}  // namespace curand
}  // namespace tcuda
