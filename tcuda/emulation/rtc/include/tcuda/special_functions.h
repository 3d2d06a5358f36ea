// The math functions of CUDA that the C library lacks.
#pragma once

#include "tcuda/math.h"

namespace tcuda {

constexpr double pi = 3.14159265358979323846;
constexpr double root_of_half = 0.70710678118654752440;
constexpr double root_of_pi = 1.77245385090551602730;

// The remainder of the division by two is exact, so large arguments keep their accuracy.
inline double sine_of_pi(double x) {
    double magnitude = __builtin_fmod(__builtin_fabs(x), 2.0);
    if (magnitude != magnitude) return magnitude;
    double sign = __builtin_signbit(x) ? -1.0 : 1.0;
    if (magnitude >= 1.0) {
        magnitude -= 1.0;
        sign = -sign;
    }
    if (magnitude == 0) return __builtin_copysign(0.0, x);
    if (magnitude > 0.5) magnitude = 1.0 - magnitude;
    return sign * (magnitude > 0.25 ? __builtin_cos(pi * (0.5 - magnitude)) : __builtin_sin(pi * magnitude));
}
inline double cosine_of_pi(double x) {
    double magnitude = __builtin_fmod(__builtin_fabs(x), 2.0);
    if (magnitude != magnitude) return magnitude;
    if (magnitude > 1.0) magnitude = 2.0 - magnitude;
    double sign = 1.0;
    if (magnitude > 0.5) {
        magnitude = 1.0 - magnitude;
        sign = -1.0;
    }
    if (magnitude == 0.5) return 0.0;
    return sign * (magnitude > 0.25 ? __builtin_sin(pi * (0.5 - magnitude)) : __builtin_cos(pi * magnitude));
}

// The inverse of erfc: a rational approximation, then steps of Halley's method.
inline double inverse_erfc(double y) {
    if (!(y >= 0 && y <= 2)) return __builtin_nan("");
    if (y == 0) return __builtin_inf();
    if (y == 2) return -__builtin_inf();
    double tail = y < 1 ? y : 2 - y;
    double t = __builtin_sqrt(-2 * __builtin_log(tail / 2));
    double x = -root_of_half * ((2.30753 + t * 0.27061) / (1 + t * (0.99229 + t * 0.04481)) - t);
    for (int i = 0; i < 4; ++i) {
        double slope = 2 / root_of_pi * __builtin_exp(-x * x);
        if (slope == 0) break;
        double error = __builtin_erfc(x) - tail;
        x += error / (slope - x * error);
    }
    return y < 1 ? x : -x;
}
inline double inverse_erf(double y) {
    double magnitude = __builtin_fabs(y);
    if (!(magnitude <= 1)) return __builtin_nan("");
    if (magnitude > 0.5) return __builtin_copysign(inverse_erfc(1 - magnitude), y);
    double x = root_of_pi / 2 * y * (1 + pi / 12 * y * y);
    for (int i = 0; i < 4; ++i) {
        double error = __builtin_erf(x) - y;
        x -= error / (2 / root_of_pi * __builtin_exp(-x * x) + x * error);
    }
    return x;
}

// erfc(x) * exp(x * x): a continued fraction where exp would overflow or lose digits.
inline double scaled_erfc(double x) {
    if (x < 0) return 2 * __builtin_exp(x * x) - (x < -6 ? 0 : scaled_erfc(-x));
    if (x < 2) return __builtin_exp(x * x) * __builtin_erfc(x);
    if (x > 1e100) return 1 / (root_of_pi * x);
    double fraction = x;
    for (int k = 150; k > 0; --k) fraction = x + 0.5 * k / fraction;
    return 1 / (root_of_pi * fraction);
}

// The modified Bessel functions: the power series, and the asymptotic series for large arguments.
inline double modified_bessel(int order, double x) {
    double magnitude = __builtin_fabs(x);
    double sum = 1, term = 1;
    if (magnitude < 30) {
        double quarter = magnitude * magnitude / 4;
        for (int k = 1; k < 200 && term > sum * 1e-17; ++k) {
            term *= quarter / (static_cast<double>(k) * (k + order));
            sum += term;
        }
        return order == 0 ? sum : sum * x / 2;
    }
    if (!(magnitude < __builtin_inf())) return order == 0 ? magnitude : x;
    for (int k = 1; k < 40; ++k) {
        double odd = 2 * k - 1;
        term *= -(4.0 * order * order - odd * odd) / (8 * magnitude * k);
        sum += term;
    }
    double half = __builtin_exp(magnitude / 2);
    double result = half * (sum / __builtin_sqrt(2 * pi * magnitude)) * half;
    return order == 1 && x < 0 ? -result : result;
}

inline double norm_of(int count, const double *values) {
    double result = 0;
    for (int i = 0; i < count; ++i) result = __builtin_hypot(result, values[i]);
    return result;
}

}  // namespace tcuda

#define TCUDA_ONE(name, expression) \
    inline double name(double x) { \
        return expression; \
    } \
    inline float name##f(float value) { \
        double x = value; \
        return static_cast<float>(expression); \
    } \
    inline float name(float x) { \
        return name##f(x); \
    }
TCUDA_ONE(rsqrt, 1 / __builtin_sqrt(x))
TCUDA_ONE(rcbrt, 1 / __builtin_cbrt(x))
TCUDA_ONE(sinpi, ::tcuda::sine_of_pi(x))
TCUDA_ONE(cospi, ::tcuda::cosine_of_pi(x))
TCUDA_ONE(erfinv, ::tcuda::inverse_erf(x))
TCUDA_ONE(erfcinv, ::tcuda::inverse_erfc(x))
TCUDA_ONE(erfcx, ::tcuda::scaled_erfc(x))
TCUDA_ONE(normcdf, 0.5 * __builtin_erfc(-x * ::tcuda::root_of_half))
TCUDA_ONE(normcdfinv, ::tcuda::inverse_erfc(2 * x) / -::tcuda::root_of_half)
TCUDA_ONE(cyl_bessel_i0, ::tcuda::modified_bessel(0, x))
TCUDA_ONE(cyl_bessel_i1, ::tcuda::modified_bessel(1, x))
#undef TCUDA_ONE
inline float exp10(float x) {
    return exp10f(x);
}

inline void sincos(double x, double *sine, double *cosine) {
    *sine = __builtin_sin(x);
    *cosine = __builtin_cos(x);
}
inline void sincosf(float x, float *sine, float *cosine) {
    *sine = __builtin_sinf(x);
    *cosine = __builtin_cosf(x);
}
inline void sincos(float x, float *sine, float *cosine) {
    sincosf(x, sine, cosine);
}
inline void sincospi(double x, double *sine, double *cosine) {
    *sine = sinpi(x);
    *cosine = cospi(x);
}
inline void sincospif(float x, float *sine, float *cosine) {
    *sine = sinpif(x);
    *cosine = cospif(x);
}
inline void sincospi(float x, float *sine, float *cosine) {
    sincospif(x, sine, cosine);
}

inline double rhypot(double x, double y) {
    return 1 / __builtin_hypot(x, y);
}
inline float rhypotf(float x, float y) {
    return static_cast<float>(rhypot(static_cast<double>(x), static_cast<double>(y)));
}
inline double norm3d(double x, double y, double z) {
    return __builtin_hypot(__builtin_hypot(x, y), z);
}
inline float norm3df(float x, float y, float z) {
    return static_cast<float>(norm3d(x, y, z));
}
inline double rnorm3d(double x, double y, double z) {
    return 1 / norm3d(x, y, z);
}
inline float rnorm3df(float x, float y, float z) {
    return static_cast<float>(rnorm3d(x, y, z));
}
inline double norm4d(double x, double y, double z, double w) {
    return __builtin_hypot(__builtin_hypot(x, y), __builtin_hypot(z, w));
}
inline float norm4df(float x, float y, float z, float w) {
    return static_cast<float>(norm4d(x, y, z, w));
}
inline double rnorm4d(double x, double y, double z, double w) {
    return 1 / norm4d(x, y, z, w);
}
inline float rnorm4df(float x, float y, float z, float w) {
    return static_cast<float>(rnorm4d(x, y, z, w));
}
inline double norm(int count, const double *values) {
    return ::tcuda::norm_of(count, values);
}
inline float normf(int count, const float *values) {
    double result = 0;
    for (int i = 0; i < count; ++i) result = __builtin_hypot(result, static_cast<double>(values[i]));
    return static_cast<float>(result);
}
inline double rnorm(int count, const double *values) {
    return 1 / norm(count, values);
}
inline float rnormf(int count, const float *values) {
    return 1 / normf(count, values);
}
