// The intrinsic functions that convert numbers, reinterpret bits and round in a given direction.
#pragma once

#include "tcuda/operators.h"
#include "tcuda/qualifiers.h"

namespace tcuda {

// The numbers of the rounding modes in <fenv.h>, which NVRTC does not have.
#if defined(__x86_64__)
constexpr int mode_down = 0x400, mode_up = 0x800, mode_zero = 0xc00;
#elif defined(__aarch64__)
constexpr int mode_up = 0x400000, mode_down = 0x800000, mode_zero = 0xc00000;
#else
#error the rounding modes of this processor are not known
#endif

extern "C" {
int tcuda_rounding() noexcept __asm__("fegetround");
int tcuda_set_rounding(int) noexcept __asm__("fesetround");
}

template <class To, class From>
inline To reinterpret(From from) {
    static_assert(sizeof(To) == sizeof(From), "the types differ in size");
    To to;
    __builtin_memcpy(static_cast<void *>(&to), &from, sizeof(To));
    return to;
}

// Runs an operation in a rounding mode. The memory operands keep the arithmetic inside the mode.
template <int mode, class Operation>
inline auto rounded(Operation operation) -> decltype(operation()) {
    int previous = tcuda_rounding();
    tcuda_set_rounding(mode);
    __asm__ volatile("" ::: "memory");
    auto result = operation();
    __asm__ volatile("" : "+m"(result) : : "memory");
    tcuda_set_rounding(previous);
    return result;
}

template <class T>
inline T opaque(T value) {
    __asm__ volatile("" : "+m"(value));
    return value;
}

inline float to_nearest(float value) {
    return __builtin_rintf(value);
}
inline double to_nearest(double value) {
    return __builtin_rint(value);
}
inline float toward_zero(float value) {
    return __builtin_truncf(value);
}
inline double toward_zero(double value) {
    return __builtin_trunc(value);
}
inline float upward(float value) {
    return __builtin_ceilf(value);
}
inline double upward(double value) {
    return __builtin_ceil(value);
}
inline float downward(float value) {
    return __builtin_floorf(value);
}
inline double downward(double value) {
    return __builtin_floor(value);
}

}  // namespace tcuda

inline int __float_as_int(float value) {
    return ::tcuda::reinterpret<int>(value);
}
inline unsigned int __float_as_uint(float value) {
    return ::tcuda::reinterpret<unsigned int>(value);
}
inline float __int_as_float(int value) {
    return ::tcuda::reinterpret<float>(value);
}
inline float __uint_as_float(unsigned int value) {
    return ::tcuda::reinterpret<float>(value);
}
inline long long __double_as_longlong(double value) {
    return ::tcuda::reinterpret<long long>(value);
}
inline double __longlong_as_double(long long value) {
    return ::tcuda::reinterpret<double>(value);
}
inline int __double2loint(double value) {
    return static_cast<int>(::tcuda::reinterpret<long long>(value));
}
inline int __double2hiint(double value) {
    return static_cast<int>(::tcuda::reinterpret<long long>(value) >> 32);
}
inline double __hiloint2double(int high, int low) {
    return ::tcuda::reinterpret<double>(static_cast<unsigned long long>(static_cast<unsigned>(high)) << 32 |
                                        static_cast<unsigned>(low));
}

#define TCUDA_TO_INTEGER(name, integer, floating) \
    inline integer name##_rn(floating value) { \
        return ::tcuda::clamped<integer>(::tcuda::to_nearest(value)); \
    } \
    inline integer name##_rz(floating value) { \
        return ::tcuda::clamped<integer>(::tcuda::toward_zero(value)); \
    } \
    inline integer name##_ru(floating value) { \
        return ::tcuda::clamped<integer>(::tcuda::upward(value)); \
    } \
    inline integer name##_rd(floating value) { \
        return ::tcuda::clamped<integer>(::tcuda::downward(value)); \
    }
TCUDA_TO_INTEGER(__float2int, int, float)
TCUDA_TO_INTEGER(__float2uint, unsigned int, float)
TCUDA_TO_INTEGER(__float2ll, long long, float)
TCUDA_TO_INTEGER(__float2ull, unsigned long long, float)
TCUDA_TO_INTEGER(__double2int, int, double)
TCUDA_TO_INTEGER(__double2uint, unsigned int, double)
TCUDA_TO_INTEGER(__double2ll, long long, double)
TCUDA_TO_INTEGER(__double2ull, unsigned long long, double)
#undef TCUDA_TO_INTEGER

#define TCUDA_TO_FLOATING(name, floating, source) \
    inline floating name##_rn(source value) { \
        return static_cast<floating>(value); \
    } \
    inline floating name##_rz(source value) { \
        return ::tcuda::rounded<::tcuda::mode_zero>([=] { return static_cast<floating>(::tcuda::opaque(value)); }); \
    } \
    inline floating name##_ru(source value) { \
        return ::tcuda::rounded<::tcuda::mode_up>([=] { return static_cast<floating>(::tcuda::opaque(value)); }); \
    } \
    inline floating name##_rd(source value) { \
        return ::tcuda::rounded<::tcuda::mode_down>([=] { return static_cast<floating>(::tcuda::opaque(value)); }); \
    }
TCUDA_TO_FLOATING(__int2float, float, int)
TCUDA_TO_FLOATING(__uint2float, float, unsigned int)
TCUDA_TO_FLOATING(__ll2float, float, long long)
TCUDA_TO_FLOATING(__ull2float, float, unsigned long long)
TCUDA_TO_FLOATING(__ll2double, double, long long)
TCUDA_TO_FLOATING(__ull2double, double, unsigned long long)
TCUDA_TO_FLOATING(__double2float, float, double)
#undef TCUDA_TO_FLOATING
inline double __int2double_rn(int value) {
    return value;
}
inline double __uint2double_rn(unsigned int value) {
    return value;
}

#define TCUDA_ROUNDED(name, floating, parameters, nearest, directed) \
    inline floating name##_rn parameters { \
        return nearest; \
    } \
    inline floating name##_rz parameters { \
        return ::tcuda::rounded<::tcuda::mode_zero>([=] { return directed; }); \
    } \
    inline floating name##_ru parameters { \
        return ::tcuda::rounded<::tcuda::mode_up>([=] { return directed; }); \
    } \
    inline floating name##_rd parameters { \
        return ::tcuda::rounded<::tcuda::mode_down>([=] { return directed; }); \
    }
#define TCUDA_ROUNDED_OPERATOR(name, floating, operation) \
    TCUDA_ROUNDED(name, floating, (floating a, floating b), ::tcuda::opaque(a operation b), ::tcuda::opaque(a) operation b)
TCUDA_ROUNDED_OPERATOR(__fadd, float, +)
TCUDA_ROUNDED_OPERATOR(__fsub, float, -)
TCUDA_ROUNDED_OPERATOR(__fmul, float, *)
TCUDA_ROUNDED_OPERATOR(__fdiv, float, /)
TCUDA_ROUNDED_OPERATOR(__dadd, double, +)
TCUDA_ROUNDED_OPERATOR(__dsub, double, -)
TCUDA_ROUNDED_OPERATOR(__dmul, double, *)
TCUDA_ROUNDED_OPERATOR(__ddiv, double, /)
TCUDA_ROUNDED(__fmaf, float, (float a, float b, float c), __builtin_fmaf(a, b, c), __builtin_fmaf(::tcuda::opaque(a), b, c))
TCUDA_ROUNDED(__fma, double, (double a, double b, double c), __builtin_fma(a, b, c), __builtin_fma(::tcuda::opaque(a), b, c))
TCUDA_ROUNDED(__frcp, float, (float a), 1.0f / a, 1.0f / ::tcuda::opaque(a))
TCUDA_ROUNDED(__drcp, double, (double a), 1.0 / a, 1.0 / ::tcuda::opaque(a))
TCUDA_ROUNDED(__fsqrt, float, (float a), __builtin_sqrtf(a), __builtin_sqrtf(::tcuda::opaque(a)))
TCUDA_ROUNDED(__dsqrt, double, (double a), __builtin_sqrt(a), __builtin_sqrt(::tcuda::opaque(a)))
#undef TCUDA_ROUNDED_OPERATOR
#undef TCUDA_ROUNDED
inline float __frsqrt_rn(float value) {
    return static_cast<float>(1.0 / __builtin_sqrt(value));
}
