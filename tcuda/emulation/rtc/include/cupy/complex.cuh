// The complex numbers of CuPy's kernels: thrust::complex and its functions, also without the namespace.
// The functions are those of the C library.
#pragma once

#include "tcuda/device.h"

namespace thrust {

template <typename T>
struct __align__(sizeof(T) * 2) complex {
    typedef T value_type;

    complex() = default;
    complex(const complex &) = default;
    TCUDA_ANY_ALIGNMENT complex(const T &re) : re_(re), im_() {}
    TCUDA_ANY_ALIGNMENT complex(const T &re, const T &im) : re_(re), im_(im) {}
    template <typename U>
    TCUDA_ANY_ALIGNMENT complex(const complex<U> &z) : re_(static_cast<T>(z.real())), im_(static_cast<T>(z.imag())) {}

    complex &operator=(const complex &) = default;
    TCUDA_ANY_ALIGNMENT complex &operator=(const T &re) {
        return *this = complex(re);
    }
    template <typename U>
    TCUDA_ANY_ALIGNMENT complex &operator=(const complex<U> &z) {
        return *this = complex(z);
    }

    TCUDA_ANY_ALIGNMENT complex &operator+=(const complex z) {
        return *this = *this + z;
    }
    TCUDA_ANY_ALIGNMENT complex &operator-=(const complex z) {
        return *this = *this - z;
    }
    TCUDA_ANY_ALIGNMENT complex &operator*=(const complex z) {
        return *this = *this * z;
    }
    TCUDA_ANY_ALIGNMENT complex &operator/=(const complex z) {
        return *this = *this / z;
    }

    TCUDA_ANY_ALIGNMENT T real() const {
        return re_;
    }
    TCUDA_ANY_ALIGNMENT T imag() const {
        return im_;
    }
    TCUDA_ANY_ALIGNMENT T real() const volatile {
        return re_;
    }
    TCUDA_ANY_ALIGNMENT T imag() const volatile {
        return im_;
    }
    TCUDA_ANY_ALIGNMENT void real(T re) {
        re_ = re;
    }
    TCUDA_ANY_ALIGNMENT void imag(T im) {
        im_ = im;
    }
    TCUDA_ANY_ALIGNMENT void real(T re) volatile {
        re_ = re;
    }
    TCUDA_ANY_ALIGNMENT void imag(T im) volatile {
        im_ = im;
    }

private:
    T re_, im_;
};

template <typename T>
TCUDA_ANY_ALIGNMENT inline complex<T> operator+(const complex<T> &a, const complex<T> &b) {
    return {a.real() + b.real(), a.imag() + b.imag()};
}
template <typename T>
TCUDA_ANY_ALIGNMENT inline complex<T> operator+(const complex<T> &a, const T &b) {
    return {a.real() + b, a.imag()};
}
template <typename T>
TCUDA_ANY_ALIGNMENT inline complex<T> operator+(const T &a, const complex<T> &b) {
    return {a + b.real(), b.imag()};
}
template <typename T>
TCUDA_ANY_ALIGNMENT inline complex<T> operator-(const complex<T> &a, const complex<T> &b) {
    return {a.real() - b.real(), a.imag() - b.imag()};
}
template <typename T>
TCUDA_ANY_ALIGNMENT inline complex<T> operator-(const complex<T> &a, const T &b) {
    return {a.real() - b, a.imag()};
}
template <typename T>
TCUDA_ANY_ALIGNMENT inline complex<T> operator-(const T &a, const complex<T> &b) {
    return {a - b.real(), -b.imag()};
}
template <typename T>
TCUDA_ANY_ALIGNMENT inline complex<T> operator*(const complex<T> &a, const complex<T> &b) {
    return {a.real() * b.real() - a.imag() * b.imag(), a.real() * b.imag() + a.imag() * b.real()};
}
template <typename T>
TCUDA_ANY_ALIGNMENT inline complex<T> operator*(const complex<T> &a, const T &b) {
    return {a.real() * b, a.imag() * b};
}
template <typename T>
TCUDA_ANY_ALIGNMENT inline complex<T> operator*(const T &a, const complex<T> &b) {
    return {a * b.real(), a * b.imag()};
}
// The scale prevents an overflow of the squares of the divisor.
template <typename T>
TCUDA_ANY_ALIGNMENT inline complex<T> operator/(const complex<T> &a, const complex<T> &b) {
    T scale = T(1) / (::abs(b.real()) + ::abs(b.imag()));
    T a_re = a.real() * scale, a_im = a.imag() * scale, b_re = b.real() * scale, b_im = b.imag() * scale;
    T inverse = T(1) / (b_re * b_re + b_im * b_im);
    return {(a_re * b_re + a_im * b_im) * inverse, (a_im * b_re - a_re * b_im) * inverse};
}
template <typename T>
TCUDA_ANY_ALIGNMENT inline complex<T> operator/(const complex<T> &a, const T &b) {
    return {a.real() / b, a.imag() / b};
}
template <typename T>
TCUDA_ANY_ALIGNMENT inline complex<T> operator/(const T &a, const complex<T> &b) {
    return complex<T>(a) / b;
}
template <typename T>
TCUDA_ANY_ALIGNMENT inline complex<T> operator+(const complex<T> &z) {
    return z;
}
template <typename T>
TCUDA_ANY_ALIGNMENT inline complex<T> operator-(const complex<T> &z) {
    return {-z.real(), -z.imag()};
}

// Numbers are ordered by the real part, then by the imaginary part, as in NumPy.
#define TCUDA_COMPARISON(operation, expression) \
    template <typename T> \
    TCUDA_ANY_ALIGNMENT inline bool operator operation(const complex<T> &a, const complex<T> &b) { \
        return expression; \
    } \
    template <typename T> \
    TCUDA_ANY_ALIGNMENT inline bool operator operation(const complex<T> &a, const T &b) { \
        return a operation complex<T>(b); \
    } \
    template <typename T> \
    TCUDA_ANY_ALIGNMENT inline bool operator operation(const T &a, const complex<T> &b) { \
        return complex<T>(a) operation b; \
    }
TCUDA_COMPARISON(==, a.real() == b.real() && a.imag() == b.imag())
TCUDA_COMPARISON(!=, !(a == b))
TCUDA_COMPARISON(<, a.real() < b.real() || (a.real() == b.real() && a.imag() < b.imag()))
TCUDA_COMPARISON(>, a.real() > b.real() || (a.real() == b.real() && a.imag() > b.imag()))
TCUDA_COMPARISON(<=, a == b || a < b)
TCUDA_COMPARISON(>=, a == b || a > b)
#undef TCUDA_COMPARISON

template <typename T>
TCUDA_ANY_ALIGNMENT inline T real(const complex<T> &z) {
    return z.real();
}
template <typename T>
TCUDA_ANY_ALIGNMENT inline T imag(const complex<T> &z) {
    return z.imag();
}
template <typename T>
TCUDA_ANY_ALIGNMENT inline T abs(const complex<T> &z) {
    return ::hypot(z.real(), z.imag());
}
template <typename T>
TCUDA_ANY_ALIGNMENT inline T arg(const complex<T> &z) {
    return ::atan2(z.imag(), z.real());
}
template <typename T>
TCUDA_ANY_ALIGNMENT inline T norm(const complex<T> &z) {
    return z.real() * z.real() + z.imag() * z.imag();
}
template <typename T>
TCUDA_ANY_ALIGNMENT inline complex<T> conj(const complex<T> &z) {
    return {z.real(), -z.imag()};
}
template <typename T>
TCUDA_ANY_ALIGNMENT inline complex<T> polar(const T &magnitude, const T &angle = 0) {
    return {magnitude * ::cos(angle), magnitude * ::sin(angle)};
}
template <typename T>
TCUDA_ANY_ALIGNMENT inline complex<T> proj(const complex<T> &z) {
    if (!::isinf(z.real()) && !::isinf(z.imag())) return z;
    return {static_cast<T>(__builtin_inf()), ::copysign(T(0), z.imag())};
}

#define TCUDA_COMPLEX_FUNCTION(name) \
    TCUDA_ANY_ALIGNMENT inline complex<double> name(const complex<double> &z) { \
        return ::tcuda::reinterpret<complex<double>>(__builtin_c##name(::tcuda::reinterpret<double _Complex>(z))); \
    } \
    TCUDA_ANY_ALIGNMENT inline complex<float> name(const complex<float> &z) { \
        return ::tcuda::reinterpret<complex<float>>(__builtin_c##name##f(::tcuda::reinterpret<float _Complex>(z))); \
    }
TCUDA_COMPLEX_FUNCTION(exp)
TCUDA_COMPLEX_FUNCTION(log)
TCUDA_COMPLEX_FUNCTION(sqrt)
TCUDA_COMPLEX_FUNCTION(sin)
TCUDA_COMPLEX_FUNCTION(cos)
TCUDA_COMPLEX_FUNCTION(tan)
TCUDA_COMPLEX_FUNCTION(sinh)
TCUDA_COMPLEX_FUNCTION(cosh)
TCUDA_COMPLEX_FUNCTION(tanh)
TCUDA_COMPLEX_FUNCTION(asin)
TCUDA_COMPLEX_FUNCTION(acos)
TCUDA_COMPLEX_FUNCTION(atan)
TCUDA_COMPLEX_FUNCTION(asinh)
TCUDA_COMPLEX_FUNCTION(acosh)
TCUDA_COMPLEX_FUNCTION(atanh)
#undef TCUDA_COMPLEX_FUNCTION
template <typename T>
TCUDA_ANY_ALIGNMENT inline complex<T> log10(const complex<T> &z) {
    return log(z) / static_cast<T>(2.30258509299404568402);
}

template <typename T, typename U, bool first>
struct wider {
    typedef T type;
};
template <typename T, typename U>
struct wider<T, U, false> {
    typedef U type;
};
template <typename T, typename U>
struct promoted : wider<T, U, (sizeof(T) > sizeof(U))> {};

template <typename T>
TCUDA_ANY_ALIGNMENT inline complex<T> pow(const complex<T> &z, const complex<T> &exponent) {
    return exp(log(z) * exponent);
}
template <typename T>
TCUDA_ANY_ALIGNMENT inline complex<T> pow(const complex<T> &z, const T &exponent) {
    return exp(log(z) * exponent);
}
template <typename T>
TCUDA_ANY_ALIGNMENT inline complex<T> pow(const T &x, const complex<T> &exponent) {
    return exp(::log(x) * exponent);
}
template <typename T, typename U>
TCUDA_ANY_ALIGNMENT inline complex<typename promoted<T, U>::type> pow(const complex<T> &z, const complex<U> &exponent) {
    typedef typename promoted<T, U>::type P;
    return pow(complex<P>(z), complex<P>(exponent));
}
template <typename T, typename U>
TCUDA_ANY_ALIGNMENT inline complex<typename promoted<T, U>::type> pow(const complex<T> &z, const U &exponent) {
    typedef typename promoted<T, U>::type P;
    return pow(complex<P>(z), static_cast<P>(exponent));
}
template <typename T, typename U>
TCUDA_ANY_ALIGNMENT inline complex<typename promoted<T, U>::type> pow(const T &x, const complex<U> &exponent) {
    typedef typename promoted<T, U>::type P;
    return pow(static_cast<P>(x), complex<P>(exponent));
}

}  // namespace thrust

using thrust::arg;
using thrust::complex;
using thrust::conj;
using thrust::imag;
using thrust::real;
using thrust::exp;
using thrust::log;
using thrust::log10;
using thrust::sin;
using thrust::cos;
using thrust::tan;
using thrust::sinh;
using thrust::cosh;
using thrust::tanh;
using thrust::asin;
using thrust::acos;
using thrust::atan;
using thrust::asinh;
using thrust::acosh;
using thrust::atanh;

template <typename T>
TCUDA_ANY_ALIGNMENT inline bool isnan(complex<T> z) {
    return isnan(z.real()) || isnan(z.imag());
}
template <typename T>
TCUDA_ANY_ALIGNMENT inline bool isinf(complex<T> z) {
    return isinf(z.real()) || isinf(z.imag());
}
template <typename T>
TCUDA_ANY_ALIGNMENT inline bool isfinite(complex<T> z) {
    return isfinite(z.real()) && isfinite(z.imag());
}
template <typename T>
TCUDA_ANY_ALIGNMENT inline complex<T> log1p(complex<T> z) {
    return log(z + T(1));
}
template <typename T>
TCUDA_ANY_ALIGNMENT inline complex<T> log2(complex<T> z) {
    return log(z) / log(T(2));
}
template <typename T>
TCUDA_ANY_ALIGNMENT inline complex<T> expm1(complex<T> z) {
    return exp(z) - T(1);
}
template <typename T>
TCUDA_ANY_ALIGNMENT inline complex<T> rint(complex<T> z) {
    return complex<T>(rint(z.real()), rint(z.imag()));
}
// The result is the number if the other argument is not a number (NaN), as in CuPy.
template <typename T>
TCUDA_ANY_ALIGNMENT inline complex<T> min(complex<T> a, complex<T> b) {
    if (isnan(a)) return b;
    if (isnan(b)) return a;
    return a < b ? a : b;
}
template <typename T>
TCUDA_ANY_ALIGNMENT inline complex<T> max(complex<T> a, complex<T> b) {
    if (isnan(a)) return b;
    if (isnan(b)) return a;
    return a > b ? a : b;
}
