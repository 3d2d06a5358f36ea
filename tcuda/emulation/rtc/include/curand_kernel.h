// cuRAND's functions for kernels: the generators XORWOW, Philox4x32-10 and MRG32k3a.
#pragma once

#include "tcuda/curand/laws.h"

using curandStateXORWOW_t = curandStateXORWOW;
using curandStatePhilox4_32_10_t = curandStatePhilox4_32_10;
using curandStateMRG32k3a_t = curandStateMRG32k3a;
using curandState = curandStateXORWOW;
using curandState_t = curandStateXORWOW;

// The state is read and written as a whole at the place of the call, so that a check names the line of the call.
#define TCUDA_RANDOM(type, name, parameters, call) \
    template <class State, class = typename State::tcuda_random_state> \
    TCUDA_AT_CALLER inline type name parameters { \
        State s = *state; \
        const type result = ::tcuda::curand::call; \
        *state = s; \
        return result; \
    }
TCUDA_RANDOM(unsigned int, curand, (State * state), next(s))
TCUDA_RANDOM(float, curand_uniform, (State * state), uniform(s))
TCUDA_RANDOM(double, curand_uniform_double, (State * state), uniform_double(s))
TCUDA_RANDOM(float, curand_normal, (State * state), normal(s))
TCUDA_RANDOM(double, curand_normal_double, (State * state), normal_double(s))
TCUDA_RANDOM(float2, curand_normal2, (State * state), normal2(s))
TCUDA_RANDOM(double2, curand_normal2_double, (State * state), normal2_double(s))
TCUDA_RANDOM(float, curand_log_normal, (State * state, float mean, float stddev), log_normal(s, mean, stddev))
TCUDA_RANDOM(double, curand_log_normal_double, (State * state, double mean, double stddev),
             log_normal_double(s, mean, stddev))
TCUDA_RANDOM(float2, curand_log_normal2, (State * state, float mean, float stddev), log_normal2(s, mean, stddev))
TCUDA_RANDOM(double2, curand_log_normal2_double, (State * state, double mean, double stddev),
             log_normal2_double(s, mean, stddev))
TCUDA_RANDOM(unsigned int, curand_poisson, (State * state, double lambda), poisson(s, lambda))
#undef TCUDA_RANDOM

// Only Philox draws four numbers at once.
#define TCUDA_FOUR(type, name, parameters, statements, ...) \
    TCUDA_AT_CALLER inline type name parameters { \
        curandStatePhilox4_32_10 s = *state; \
        namespace from = ::tcuda::curand; \
        statements; \
        *state = s; \
        return __VA_ARGS__; \
    }
TCUDA_FOUR(uint4, curand4, (curandStatePhilox4_32_10 * state), const uint4 result = from::next4(s), result)
#define TCUDA_TWO_PAIRS(type, name, parameters, call) \
    TCUDA_FOUR(type##4, name, parameters, const type##2 a = from::call; const type##2 b = from::call, {a.x, a.y, b.x, b.y})
TCUDA_TWO_PAIRS(float, curand_normal4, (curandStatePhilox4_32_10 * state), normal2(s))
TCUDA_TWO_PAIRS(double, curand_normal4_double, (curandStatePhilox4_32_10 * state), normal2_double(s))
TCUDA_TWO_PAIRS(float, curand_log_normal4, (curandStatePhilox4_32_10 * state, float mean, float stddev),
                log_normal2(s, mean, stddev))
TCUDA_TWO_PAIRS(double, curand_log_normal4_double, (curandStatePhilox4_32_10 * state, double mean, double stddev),
                log_normal2_double(s, mean, stddev))
#undef TCUDA_TWO_PAIRS
#define TCUDA_FOUR_NUMBERS(type, name, parameters, call) \
    TCUDA_FOUR(type##4, name, parameters, const auto a = from::call; const auto b = from::call; \
               const auto c = from::call; const auto d = from::call, {a, b, c, d})
TCUDA_FOUR_NUMBERS(float, curand_uniform4, (curandStatePhilox4_32_10 * state), uniform(s))
TCUDA_FOUR_NUMBERS(double, curand_uniform4_double, (curandStatePhilox4_32_10 * state), uniform_of_53_bits(s))
TCUDA_FOUR_NUMBERS(uint, curand_poisson4, (curandStatePhilox4_32_10 * state, double lambda), poisson(s, lambda))
#undef TCUDA_FOUR_NUMBERS
TCUDA_FOUR(double2, curand_uniform2_double, (curandStatePhilox4_32_10 * state),
           const double a = from::uniform_of_53_bits(s); const double b = from::uniform_of_53_bits(s), {a, b})
#undef TCUDA_FOUR

template <class State, class = typename State::tcuda_random_state>
TCUDA_AT_CALLER inline void curand_init(unsigned long long seed, unsigned long long subsequence,
                                        unsigned long long offset, State *state) {
    State s;
    ::tcuda::curand::start(s, seed, subsequence, offset);
    *state = s;
}

#define TCUDA_SKIP(name, function) \
    template <class State, class = typename State::tcuda_random_state> \
    TCUDA_AT_CALLER inline void name(unsigned long long n, State *state) { \
        State s = *state; \
        ::tcuda::curand::function(s, n); \
        *state = s; \
    }
TCUDA_SKIP(skipahead, skip)
TCUDA_SKIP(skipahead_sequence, skip_sequence)
TCUDA_SKIP(skipahead_subsequence, skip_subsequence)
#undef TCUDA_SKIP
