// The math functions of CUDA C++, with the overloads that CUDA has.
// The functions come from the C library. The host's headers declare more names than CUDA, so this header declares them.
#pragma once

#include "tcuda/conversions.h"

extern "C" {
int abs(int) noexcept;
long labs(long) noexcept;
long long llabs(long long) noexcept;

#define TCUDA_ONE(name) \
    double name(double) noexcept; \
    float name##f(float) noexcept;
#define TCUDA_TWO(name) \
    double name(double, double) noexcept; \
    float name##f(float, float) noexcept;
TCUDA_ONE(acos)
TCUDA_ONE(acosh)
TCUDA_ONE(asin)
TCUDA_ONE(asinh)
TCUDA_ONE(atan)
TCUDA_ONE(atanh)
TCUDA_ONE(cbrt)
TCUDA_ONE(ceil)
TCUDA_ONE(cos)
TCUDA_ONE(cosh)
TCUDA_ONE(erf)
TCUDA_ONE(erfc)
TCUDA_ONE(exp)
TCUDA_ONE(exp2)
TCUDA_ONE(expm1)
TCUDA_ONE(fabs)
TCUDA_ONE(floor)
TCUDA_ONE(lgamma)
TCUDA_ONE(log)
TCUDA_ONE(log10)
TCUDA_ONE(log1p)
TCUDA_ONE(log2)
TCUDA_ONE(logb)
TCUDA_ONE(nearbyint)
TCUDA_ONE(rint)
TCUDA_ONE(round)
TCUDA_ONE(sin)
TCUDA_ONE(sinh)
TCUDA_ONE(sqrt)
TCUDA_ONE(tan)
TCUDA_ONE(tanh)
TCUDA_ONE(tgamma)
TCUDA_ONE(trunc)
TCUDA_ONE(exp10)
TCUDA_ONE(j0)
TCUDA_ONE(j1)
TCUDA_ONE(y0)
TCUDA_ONE(y1)
TCUDA_TWO(atan2)
TCUDA_TWO(copysign)
TCUDA_TWO(fdim)
TCUDA_TWO(fmax)
TCUDA_TWO(fmin)
TCUDA_TWO(fmod)
TCUDA_TWO(hypot)
TCUDA_TWO(nextafter)
TCUDA_TWO(remainder)
TCUDA_TWO(pow)
#undef TCUDA_ONE
#undef TCUDA_TWO
double fma(double, double, double) noexcept;
float fmaf(float, float, float) noexcept;
double ldexp(double, int) noexcept;
float ldexpf(float, int) noexcept;
double scalbn(double, int) noexcept;
float scalbnf(float, int) noexcept;
double scalbln(double, long) noexcept;
float scalblnf(float, long) noexcept;
int ilogb(double) noexcept;
int ilogbf(float) noexcept;
long lrint(double) noexcept;
long lrintf(float) noexcept;
long long llrint(double) noexcept;
long long llrintf(float) noexcept;
long lround(double) noexcept;
long lroundf(float) noexcept;
long long llround(double) noexcept;
long long llroundf(float) noexcept;
double jn(int, double) noexcept;
float jnf(int, float) noexcept;
double yn(int, double) noexcept;
float ynf(int, float) noexcept;
double nan(const char *) noexcept;
float nanf(const char *) noexcept;
}

#define TCUDA_FLOAT_ONE(name) \
    inline float name(float x) { \
        return name##f(x); \
    }
#define TCUDA_FLOAT_TWO(name) \
    inline float name(float x, float y) { \
        return name##f(x, y); \
    }
TCUDA_FLOAT_ONE(acos)
TCUDA_FLOAT_ONE(acosh)
TCUDA_FLOAT_ONE(asin)
TCUDA_FLOAT_ONE(asinh)
TCUDA_FLOAT_ONE(atan)
TCUDA_FLOAT_ONE(atanh)
TCUDA_FLOAT_ONE(cbrt)
TCUDA_FLOAT_ONE(ceil)
TCUDA_FLOAT_ONE(cos)
TCUDA_FLOAT_ONE(cosh)
TCUDA_FLOAT_ONE(erf)
TCUDA_FLOAT_ONE(erfc)
TCUDA_FLOAT_ONE(exp)
TCUDA_FLOAT_ONE(exp2)
TCUDA_FLOAT_ONE(expm1)
TCUDA_FLOAT_ONE(fabs)
TCUDA_FLOAT_ONE(floor)
TCUDA_FLOAT_ONE(lgamma)
TCUDA_FLOAT_ONE(log)
TCUDA_FLOAT_ONE(log10)
TCUDA_FLOAT_ONE(log1p)
TCUDA_FLOAT_ONE(log2)
TCUDA_FLOAT_ONE(logb)
TCUDA_FLOAT_ONE(nearbyint)
TCUDA_FLOAT_ONE(rint)
TCUDA_FLOAT_ONE(round)
TCUDA_FLOAT_ONE(sin)
TCUDA_FLOAT_ONE(sinh)
TCUDA_FLOAT_ONE(sqrt)
TCUDA_FLOAT_ONE(tan)
TCUDA_FLOAT_ONE(tanh)
TCUDA_FLOAT_ONE(tgamma)
TCUDA_FLOAT_ONE(trunc)
TCUDA_FLOAT_TWO(atan2)
TCUDA_FLOAT_TWO(copysign)
TCUDA_FLOAT_TWO(fdim)
TCUDA_FLOAT_TWO(fmax)
TCUDA_FLOAT_TWO(fmin)
TCUDA_FLOAT_TWO(fmod)
TCUDA_FLOAT_TWO(hypot)
TCUDA_FLOAT_TWO(nextafter)
TCUDA_FLOAT_TWO(remainder)
TCUDA_FLOAT_TWO(pow)
#undef TCUDA_FLOAT_ONE
#undef TCUDA_FLOAT_TWO

inline long abs(long x) {
    return x < 0 ? -x : x;
}
inline long long abs(long long x) {
    return x < 0 ? -x : x;
}
inline float abs(float x) {
    return __builtin_fabsf(x);
}
inline double abs(double x) {
    return __builtin_fabs(x);
}
inline double pow(double x, int y) {
    return pow(x, static_cast<double>(y));
}
inline float pow(float x, int y) {
    return static_cast<float>(pow(static_cast<double>(x), static_cast<double>(y)));
}
inline double copysign(double x, float y) {
    return __builtin_copysign(x, static_cast<double>(y));
}
inline double copysign(float x, double y) {
    return __builtin_copysign(static_cast<double>(x), y);
}
inline float j0(float x) {
    return j0f(x);
}
inline float j1(float x) {
    return j1f(x);
}
inline float jn(int order, float x) {
    return jnf(order, x);
}
inline float y0(float x) {
    return y0f(x);
}
inline float y1(float x) {
    return y1f(x);
}
inline float yn(int order, float x) {
    return ynf(order, x);
}
inline float fma(float x, float y, float z) {
    return __builtin_fmaf(x, y, z);
}
inline float ldexp(float x, int exponent) {
    return ldexpf(x, exponent);
}
inline float scalbn(float x, int exponent) {
    return scalbnf(x, exponent);
}
inline float scalbln(float x, long exponent) {
    return scalblnf(x, exponent);
}
inline int ilogb(float x) {
    return ilogbf(x);
}
inline long lrint(float x) {
    return lrintf(x);
}
inline long long llrint(float x) {
    return llrintf(x);
}
inline long lround(float x) {
    return lroundf(x);
}
inline long long llround(float x) {
    return llroundf(x);
}

// The code here stores the second result of a function, and not the C library, so that the store is checked.
inline float frexpf(float x, int *exponent) {
    int stored;
    float result = __builtin_frexpf(x, &stored);
    *exponent = stored;
    return result;
}
inline float frexp(float x, int *exponent) {
    return frexpf(x, exponent);
}
inline double frexp(double x, int *exponent) {
    int stored;
    double result = __builtin_frexp(x, &stored);
    *exponent = stored;
    return result;
}
inline float modff(float x, float *whole) {
    float stored;
    float result = __builtin_modff(x, &stored);
    *whole = stored;
    return result;
}
inline float modf(float x, float *whole) {
    return modff(x, whole);
}
inline double modf(double x, double *whole) {
    double stored;
    double result = __builtin_modf(x, &stored);
    *whole = stored;
    return result;
}
inline float remquof(float x, float y, int *quotient) {
    int stored;
    float result = __builtin_remquof(x, y, &stored);
    *quotient = stored;
    return result;
}
inline float remquo(float x, float y, int *quotient) {
    return remquof(x, y, quotient);
}
inline double remquo(double x, double y, int *quotient) {
    int stored;
    double result = __builtin_remquo(x, y, &stored);
    *quotient = stored;
    return result;
}

#define TCUDA_CLASSIFICATION(name) \
    inline int name(float x) { \
        return __builtin_##name(x) != 0; \
    } \
    inline int name(double x) { \
        return __builtin_##name(x) != 0; \
    }
TCUDA_CLASSIFICATION(isnan)
TCUDA_CLASSIFICATION(isinf)
TCUDA_CLASSIFICATION(isfinite)
TCUDA_CLASSIFICATION(signbit)
#undef TCUDA_CLASSIFICATION

// CUDA has these overloads for mixed types. Other mixtures are ambiguous in CUDA too.
#define TCUDA_MIN_MAX(result, left, right) \
    inline result min(left a, right b) { \
        return static_cast<result>(b) < static_cast<result>(a) ? static_cast<result>(b) : static_cast<result>(a); \
    } \
    inline result max(left a, right b) { \
        return static_cast<result>(a) < static_cast<result>(b) ? static_cast<result>(b) : static_cast<result>(a); \
    }
#define TCUDA_MIN_MAX_OF_INTEGERS(integer) \
    TCUDA_MIN_MAX(integer, integer, integer) \
    TCUDA_MIN_MAX(unsigned integer, unsigned integer, unsigned integer) \
    TCUDA_MIN_MAX(unsigned integer, integer, unsigned integer) \
    TCUDA_MIN_MAX(unsigned integer, unsigned integer, integer)
TCUDA_MIN_MAX_OF_INTEGERS(int)
TCUDA_MIN_MAX_OF_INTEGERS(long)
TCUDA_MIN_MAX_OF_INTEGERS(long long)
#undef TCUDA_MIN_MAX_OF_INTEGERS
#undef TCUDA_MIN_MAX
#define TCUDA_MIN_MAX(result, left, right, suffix) \
    inline result min(left a, right b) { \
        return __builtin_fmin##suffix(a, b); \
    } \
    inline result max(left a, right b) { \
        return __builtin_fmax##suffix(a, b); \
    }
TCUDA_MIN_MAX(float, float, float, f)
TCUDA_MIN_MAX(double, double, double, )
TCUDA_MIN_MAX(double, float, double, )
TCUDA_MIN_MAX(double, double, float, )
#undef TCUDA_MIN_MAX
inline unsigned int umin(unsigned int a, unsigned int b) {
    return min(a, b);
}
inline unsigned int umax(unsigned int a, unsigned int b) {
    return max(a, b);
}
inline long long llmin(long long a, long long b) {
    return min(a, b);
}
inline long long llmax(long long a, long long b) {
    return max(a, b);
}
inline unsigned long long ullmin(unsigned long long a, unsigned long long b) {
    return min(a, b);
}
inline unsigned long long ullmax(unsigned long long a, unsigned long long b) {
    return max(a, b);
}

// The fast functions of single precision. Their results on a device differ in the last bits.
inline float __saturatef(float x) {
    return x > 0 ? (x < 1 ? x : 1.0f) : 0.0f;
}
inline float __fdividef(float x, float y) {
    return x / y;
}
inline float fdividef(float x, float y) {
    return x / y;
}
inline double fdivide(double x, double y) {
    return x / y;
}
#define TCUDA_FAST(name, function) \
    inline float name(float x) { \
        return function(x); \
    }
TCUDA_FAST(__sinf, sinf)
TCUDA_FAST(__cosf, cosf)
TCUDA_FAST(__tanf, tanf)
TCUDA_FAST(__tanhf, tanhf)
TCUDA_FAST(__expf, expf)
TCUDA_FAST(__exp10f, exp10f)
TCUDA_FAST(__logf, logf)
TCUDA_FAST(__log2f, log2f)
TCUDA_FAST(__log10f, log10f)
#undef TCUDA_FAST
inline float __powf(float x, float y) {
    return powf(x, y);
}
inline void __sincosf(float x, float *sine, float *cosine) {
    *sine = sinf(x);
    *cosine = cosf(x);
}
