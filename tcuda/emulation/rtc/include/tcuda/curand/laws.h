// The laws of the random numbers: uniform, normal, log-normal and Poisson.
// A function that draws two normal numbers at once keeps the second one for the next call, as in cuRAND.
#pragma once

#include "tcuda/curand/mrg32k3a.h"
#include "tcuda/curand/philox.h"
#include "tcuda/curand/xorwow.h"
#include "tcuda/math.h"
#include "tcuda/special_functions.h"

namespace tcuda {
namespace curand {

constexpr float of_32_bits = 0x1p-32f;
constexpr double of_53_bits = 0x1p-53, of_modulus = 1.0 / first_modulus;
constexpr float turn = 6.2831855f;

// Two numbers of 32 bits as one of 53 bits.
inline TCUDA_UNSANITIZED double joined(unsigned int low, unsigned int high) {
    return static_cast<double>(low ^ static_cast<unsigned long long>(high) << 21);
}

template <class State>
inline TCUDA_UNSANITIZED float uniform(State &s) {
    return fmaf(static_cast<float>(next(s)), of_32_bits, of_32_bits / 2);
}
template <class State>
inline TCUDA_UNSANITIZED double uniform_of_53_bits(State &s) {
    const unsigned int low = next(s);
    return fma(joined(low, next(s)), of_53_bits, of_53_bits / 2);
}
inline TCUDA_UNSANITIZED double uniform_double(curandStateXORWOW &s) {
    return uniform_of_53_bits(s);
}
// cuRAND draws 32 bits here, and 53 bits where Philox draws several numbers at once.
inline TCUDA_UNSANITIZED double uniform_double(curandStatePhilox4_32_10 &s) {
    return fma(static_cast<double>(next(s)), 0x1p-32, 0x1p-32);
}
inline TCUDA_UNSANITIZED double uniform_double(curandStateMRG32k3a &s) {
    return next_number(s) * of_modulus;
}
inline TCUDA_UNSANITIZED double uniform_of_53_bits(curandStateMRG32k3a &s) {
    return uniform_double(s);
}
inline TCUDA_UNSANITIZED float uniform(curandStateMRG32k3a &s) {
    return static_cast<float>(uniform_double(s));
}

// The method of Box and Muller, from a number in (0, 1] and an angle.
inline TCUDA_UNSANITIZED float2 on_circle(float u, float angle) {
    float2 result;
    const float radius = sqrtf(-2.0f * logf(u));
    __sincosf(angle, &result.x, &result.y);
    result.x *= radius, result.y *= radius;
    return result;
}
inline TCUDA_UNSANITIZED double2 on_circle(double u, double half_turns) {
    double2 result;
    const double radius = sqrt(-2.0 * log(u));
    sincospi(half_turns, &result.x, &result.y);
    result.x *= radius, result.y *= radius;
    return result;
}

template <class State>
inline TCUDA_UNSANITIZED float2 normal2(State &s) {
    const float u = uniform(s);
    constexpr float step = of_32_bits * turn;
    return on_circle(u, fmaf(static_cast<float>(next(s)), step, step / 2));
}
inline TCUDA_UNSANITIZED float2 normal2(curandStateMRG32k3a &s) {
    const float u = uniform(s);
    return on_circle(u, uniform(s) * turn);
}
template <class State>
inline TCUDA_UNSANITIZED double2 normal2_double(State &s) {
    const double u = uniform_of_53_bits(s);
    return on_circle(u, uniform_of_53_bits(s) * 2.0);
}

enum Kept { nothing, a_normal, a_log_normal };

template <class State>
inline TCUDA_UNSANITIZED float normal(State &s) {
    if (s.boxmuller_flag == a_normal) {
        s.boxmuller_flag = nothing;
        return s.boxmuller_extra;
    }
    const float2 pair = normal2(s);
    s.boxmuller_flag = a_normal, s.boxmuller_extra = pair.y;
    return pair.x;
}
template <class State>
inline TCUDA_UNSANITIZED double normal_double(State &s) {
    if (s.boxmuller_flag_double == a_normal) {
        s.boxmuller_flag_double = nothing;
        return s.boxmuller_extra_double;
    }
    const double2 pair = normal2_double(s);
    s.boxmuller_flag_double = a_normal, s.boxmuller_extra_double = pair.y;
    return pair.x;
}

template <class State>
inline TCUDA_UNSANITIZED float2 log_normal2(State &s, float mean, float deviation) {
    const float2 pair = normal2(s);
    return {expf(fmaf(deviation, pair.x, mean)), expf(fmaf(deviation, pair.y, mean))};
}
template <class State>
inline TCUDA_UNSANITIZED double2 log_normal2_double(State &s, double mean, double deviation) {
    const double2 pair = normal2_double(s);
    return {exp(fma(deviation, pair.x, mean)), exp(fma(deviation, pair.y, mean))};
}
// The kept number has the mean of the call that drew the number, and not that of the call that returns the number.
template <class State>
inline TCUDA_UNSANITIZED float log_normal(State &s, float mean, float deviation) {
    if (s.boxmuller_flag == a_log_normal) {
        s.boxmuller_flag = nothing;
        return s.boxmuller_extra;
    }
    const float2 pair = log_normal2(s, mean, deviation);
    s.boxmuller_flag = a_log_normal, s.boxmuller_extra = pair.y;
    return pair.x;
}
template <class State>
inline TCUDA_UNSANITIZED double log_normal_double(State &s, double mean, double deviation) {
    if (s.boxmuller_flag_double == a_log_normal) {
        s.boxmuller_flag_double = nothing;
        return s.boxmuller_extra_double;
    }
    const double2 pair = log_normal2_double(s, mean, deviation);
    s.boxmuller_flag_double = a_log_normal, s.boxmuller_extra_double = pair.y;
    return pair.x;
}

inline TCUDA_UNSANITIZED unsigned int rounded(double mean, double normal) {
    const double value = fma(sqrt(mean), normal, mean) + 0.5;
    return value < 0 ? 0u : value > 4294967295.0 ? 0xffffffffu : static_cast<unsigned int>(value);
}

// Knuth's product of uniform numbers.
template <class State>
inline TCUDA_UNSANITIZED unsigned int small_poisson(State &s, float mean) {
    unsigned int count = 0;
    float product = expf(mean);
    do {
        ++count;
        product *= uniform(s);
    } while (product > 1.0f);
    return count - 1;
}

// W. Hoermann, "The Transformed Rejection Method for Generating Poisson Random Variables" (1993). cuRAND's own method for
// such means rests on numbers that are not published, so the law is the same, and the numbers are others.
template <class State>
inline TCUDA_UNSANITIZED unsigned int middle_poisson(State &s, double mean) {
    const double b = 0.931 + 2.53 * sqrt(mean), a = -0.059 + 0.02483 * b;
    const double inverse_alpha = 1.1239 + 1.1328 / (b - 3.4), v_r = 0.9277 - 3.6224 / (b - 2);
    while (true) {
        const double u = static_cast<double>(uniform(s)) - 0.5, v = uniform(s), us = 0.5 - fabs(u);
        const double k = floor((2 * a / us + b) * u + mean + 0.43);
        if (us >= 0.07 && v <= v_r)
            return static_cast<unsigned int>(k);
        if (k < 0 || (us < 0.013 && v > us))
            continue;
        if (log(v) + log(inverse_alpha) - log(a / (us * us) + b) <= k * log(mean) - mean - lgamma(k + 1))
            return static_cast<unsigned int>(k);
    }
}

template <class State>
inline TCUDA_UNSANITIZED unsigned int poisson(State &s, double mean) {
    if (mean < 64)
        return small_poisson(s, static_cast<float>(mean));
    return mean > 4000 ? rounded(mean, normal_double(s)) : middle_poisson(s, mean);
}

}  // namespace curand
}  // namespace tcuda
