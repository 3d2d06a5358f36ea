// Half precision: the types and functions of cuda_fp16.h.
#pragma once

#include "tcuda/device.h"
#include "tcuda/small_float.h"

struct __align__(2) __half_raw {
    unsigned short x;
};
struct __align__(4) __half2_raw {
    unsigned short x;
    unsigned short y;
};

struct __align__(2) __half {
    __half() = default;
    constexpr __half(const __half_raw &raw) : __x(raw.x) {}
    __half(float value) : __half(static_cast<double>(value)) {}
    __half(double value) : __x(::tcuda::encoded<10, 15>(value, ::tcuda::Rounding::nearest)) {}
    __half(short value) : __half(::tcuda::exact(value)) {}
    __half(unsigned short value) : __half(::tcuda::exact(value)) {}
    __half(int value) : __half(::tcuda::exact(value)) {}
    __half(unsigned int value) : __half(::tcuda::exact(value)) {}
    __half(long value) : __half(::tcuda::exact(value)) {}
    __half(unsigned long value) : __half(::tcuda::exact(value)) {}
    __half(long long value) : __half(::tcuda::exact(value)) {}
    __half(unsigned long long value) : __half(::tcuda::exact(value)) {}

    operator __half_raw() const {
        return {__x};
    }
    operator float() const {
        return ::tcuda::decoded<10, 15>(__x);
    }
    constexpr operator bool() const {
        return (__x & 0x7fff) != 0;
    }
    operator char() const {
        return ::tcuda::clamped<char>(::tcuda::toward_zero(static_cast<float>(*this)));
    }
    operator signed char() const {
        return ::tcuda::clamped<signed char>(::tcuda::toward_zero(static_cast<float>(*this)));
    }
    operator unsigned char() const {
        return ::tcuda::clamped<unsigned char>(::tcuda::toward_zero(static_cast<float>(*this)));
    }
    operator short() const {
        return ::tcuda::clamped<short>(::tcuda::toward_zero(static_cast<float>(*this)));
    }
    operator unsigned short() const {
        return ::tcuda::clamped<unsigned short>(::tcuda::toward_zero(static_cast<float>(*this)));
    }
    operator int() const {
        return ::tcuda::clamped<int>(::tcuda::toward_zero(static_cast<float>(*this)));
    }
    operator unsigned int() const {
        return ::tcuda::clamped<unsigned int>(::tcuda::toward_zero(static_cast<float>(*this)));
    }
    operator long() const {
        return ::tcuda::clamped<long>(::tcuda::toward_zero(static_cast<float>(*this)));
    }
    operator unsigned long() const {
        return ::tcuda::clamped<unsigned long>(::tcuda::toward_zero(static_cast<float>(*this)));
    }
    operator long long() const {
        return ::tcuda::clamped<long long>(::tcuda::toward_zero(static_cast<float>(*this)));
    }
    operator unsigned long long() const {
        return ::tcuda::clamped<unsigned long long>(::tcuda::toward_zero(static_cast<float>(*this)));
    }
    template <class Number>
    __half &operator=(Number value) {
        return *this = __half(value);
    }
    __half &operator=(const __half &) = default;
    __half(const __half &) = default;

protected:
    unsigned short __x;
};

struct __align__(4) __half2 {
    __half x;
    __half y;

    __half2() = default;
    constexpr __half2(const __half &low, const __half &high) : x(low), y(high) {}
    constexpr __half2(const __half2_raw &raw) : x(__half_raw{raw.x}), y(__half_raw{raw.y}) {}
    operator __half2_raw() const {
        return {static_cast<__half_raw>(x).x, static_cast<__half_raw>(y).x};
    }
};

using half = __half;
using half2 = __half2;
using __nv_half = __half;
using __nv_half2 = __half2;
using nv_half = __half;
using nv_half2 = __half2;
using __nv_half_raw = __half_raw;
using __nv_half2_raw = __half2_raw;

inline __half2 make_half2(__half low, __half high) {
    return {low, high};
}
inline float __half2float(__half value) {
    return value;
}
inline __half __float2half(float value) {
    return value;
}
inline __half __double2half(double value) {
    return value;
}
inline __half __float2half_rn(float value) {
    return __half_raw{::tcuda::encoded<10, 15>(value, ::tcuda::Rounding::nearest)};
}
inline short __half2short_rn(__half value) {
    return ::tcuda::clamped<short>(::tcuda::to_nearest(static_cast<float>(value)));
}
inline __half __short2half_rn(short value) {
    return __half_raw{::tcuda::encoded<10, 15>(::tcuda::exact(value), ::tcuda::Rounding::nearest)};
}
inline unsigned short __half2ushort_rn(__half value) {
    return ::tcuda::clamped<unsigned short>(::tcuda::to_nearest(static_cast<float>(value)));
}
inline __half __ushort2half_rn(unsigned short value) {
    return __half_raw{::tcuda::encoded<10, 15>(::tcuda::exact(value), ::tcuda::Rounding::nearest)};
}
inline int __half2int_rn(__half value) {
    return ::tcuda::clamped<int>(::tcuda::to_nearest(static_cast<float>(value)));
}
inline __half __int2half_rn(int value) {
    return __half_raw{::tcuda::encoded<10, 15>(::tcuda::exact(value), ::tcuda::Rounding::nearest)};
}
inline unsigned int __half2uint_rn(__half value) {
    return ::tcuda::clamped<unsigned int>(::tcuda::to_nearest(static_cast<float>(value)));
}
inline __half __uint2half_rn(unsigned int value) {
    return __half_raw{::tcuda::encoded<10, 15>(::tcuda::exact(value), ::tcuda::Rounding::nearest)};
}
inline long long __half2ll_rn(__half value) {
    return ::tcuda::clamped<long long>(::tcuda::to_nearest(static_cast<float>(value)));
}
inline __half __ll2half_rn(long long value) {
    return __half_raw{::tcuda::encoded<10, 15>(::tcuda::exact(value), ::tcuda::Rounding::nearest)};
}
inline unsigned long long __half2ull_rn(__half value) {
    return ::tcuda::clamped<unsigned long long>(::tcuda::to_nearest(static_cast<float>(value)));
}
inline __half __ull2half_rn(unsigned long long value) {
    return __half_raw{::tcuda::encoded<10, 15>(::tcuda::exact(value), ::tcuda::Rounding::nearest)};
}
inline __half __float2half_rz(float value) {
    return __half_raw{::tcuda::encoded<10, 15>(value, ::tcuda::Rounding::toward_zero)};
}
inline short __half2short_rz(__half value) {
    return ::tcuda::clamped<short>(::tcuda::toward_zero(static_cast<float>(value)));
}
inline __half __short2half_rz(short value) {
    return __half_raw{::tcuda::encoded<10, 15>(::tcuda::exact(value), ::tcuda::Rounding::toward_zero)};
}
inline unsigned short __half2ushort_rz(__half value) {
    return ::tcuda::clamped<unsigned short>(::tcuda::toward_zero(static_cast<float>(value)));
}
inline __half __ushort2half_rz(unsigned short value) {
    return __half_raw{::tcuda::encoded<10, 15>(::tcuda::exact(value), ::tcuda::Rounding::toward_zero)};
}
inline int __half2int_rz(__half value) {
    return ::tcuda::clamped<int>(::tcuda::toward_zero(static_cast<float>(value)));
}
inline __half __int2half_rz(int value) {
    return __half_raw{::tcuda::encoded<10, 15>(::tcuda::exact(value), ::tcuda::Rounding::toward_zero)};
}
inline unsigned int __half2uint_rz(__half value) {
    return ::tcuda::clamped<unsigned int>(::tcuda::toward_zero(static_cast<float>(value)));
}
inline __half __uint2half_rz(unsigned int value) {
    return __half_raw{::tcuda::encoded<10, 15>(::tcuda::exact(value), ::tcuda::Rounding::toward_zero)};
}
inline long long __half2ll_rz(__half value) {
    return ::tcuda::clamped<long long>(::tcuda::toward_zero(static_cast<float>(value)));
}
inline __half __ll2half_rz(long long value) {
    return __half_raw{::tcuda::encoded<10, 15>(::tcuda::exact(value), ::tcuda::Rounding::toward_zero)};
}
inline unsigned long long __half2ull_rz(__half value) {
    return ::tcuda::clamped<unsigned long long>(::tcuda::toward_zero(static_cast<float>(value)));
}
inline __half __ull2half_rz(unsigned long long value) {
    return __half_raw{::tcuda::encoded<10, 15>(::tcuda::exact(value), ::tcuda::Rounding::toward_zero)};
}
inline __half __float2half_ru(float value) {
    return __half_raw{::tcuda::encoded<10, 15>(value, ::tcuda::Rounding::upward)};
}
inline short __half2short_ru(__half value) {
    return ::tcuda::clamped<short>(::tcuda::upward(static_cast<float>(value)));
}
inline __half __short2half_ru(short value) {
    return __half_raw{::tcuda::encoded<10, 15>(::tcuda::exact(value), ::tcuda::Rounding::upward)};
}
inline unsigned short __half2ushort_ru(__half value) {
    return ::tcuda::clamped<unsigned short>(::tcuda::upward(static_cast<float>(value)));
}
inline __half __ushort2half_ru(unsigned short value) {
    return __half_raw{::tcuda::encoded<10, 15>(::tcuda::exact(value), ::tcuda::Rounding::upward)};
}
inline int __half2int_ru(__half value) {
    return ::tcuda::clamped<int>(::tcuda::upward(static_cast<float>(value)));
}
inline __half __int2half_ru(int value) {
    return __half_raw{::tcuda::encoded<10, 15>(::tcuda::exact(value), ::tcuda::Rounding::upward)};
}
inline unsigned int __half2uint_ru(__half value) {
    return ::tcuda::clamped<unsigned int>(::tcuda::upward(static_cast<float>(value)));
}
inline __half __uint2half_ru(unsigned int value) {
    return __half_raw{::tcuda::encoded<10, 15>(::tcuda::exact(value), ::tcuda::Rounding::upward)};
}
inline long long __half2ll_ru(__half value) {
    return ::tcuda::clamped<long long>(::tcuda::upward(static_cast<float>(value)));
}
inline __half __ll2half_ru(long long value) {
    return __half_raw{::tcuda::encoded<10, 15>(::tcuda::exact(value), ::tcuda::Rounding::upward)};
}
inline unsigned long long __half2ull_ru(__half value) {
    return ::tcuda::clamped<unsigned long long>(::tcuda::upward(static_cast<float>(value)));
}
inline __half __ull2half_ru(unsigned long long value) {
    return __half_raw{::tcuda::encoded<10, 15>(::tcuda::exact(value), ::tcuda::Rounding::upward)};
}
inline __half __float2half_rd(float value) {
    return __half_raw{::tcuda::encoded<10, 15>(value, ::tcuda::Rounding::downward)};
}
inline short __half2short_rd(__half value) {
    return ::tcuda::clamped<short>(::tcuda::downward(static_cast<float>(value)));
}
inline __half __short2half_rd(short value) {
    return __half_raw{::tcuda::encoded<10, 15>(::tcuda::exact(value), ::tcuda::Rounding::downward)};
}
inline unsigned short __half2ushort_rd(__half value) {
    return ::tcuda::clamped<unsigned short>(::tcuda::downward(static_cast<float>(value)));
}
inline __half __ushort2half_rd(unsigned short value) {
    return __half_raw{::tcuda::encoded<10, 15>(::tcuda::exact(value), ::tcuda::Rounding::downward)};
}
inline int __half2int_rd(__half value) {
    return ::tcuda::clamped<int>(::tcuda::downward(static_cast<float>(value)));
}
inline __half __int2half_rd(int value) {
    return __half_raw{::tcuda::encoded<10, 15>(::tcuda::exact(value), ::tcuda::Rounding::downward)};
}
inline unsigned int __half2uint_rd(__half value) {
    return ::tcuda::clamped<unsigned int>(::tcuda::downward(static_cast<float>(value)));
}
inline __half __uint2half_rd(unsigned int value) {
    return __half_raw{::tcuda::encoded<10, 15>(::tcuda::exact(value), ::tcuda::Rounding::downward)};
}
inline long long __half2ll_rd(__half value) {
    return ::tcuda::clamped<long long>(::tcuda::downward(static_cast<float>(value)));
}
inline __half __ll2half_rd(long long value) {
    return __half_raw{::tcuda::encoded<10, 15>(::tcuda::exact(value), ::tcuda::Rounding::downward)};
}
inline unsigned long long __half2ull_rd(__half value) {
    return ::tcuda::clamped<unsigned long long>(::tcuda::downward(static_cast<float>(value)));
}
inline __half __ull2half_rd(unsigned long long value) {
    return __half_raw{::tcuda::encoded<10, 15>(::tcuda::exact(value), ::tcuda::Rounding::downward)};
}
inline signed char __half2char_rz(__half value) {
    return value;
}
inline unsigned char __half2uchar_rz(__half value) {
    return value;
}
inline short __half_as_short(__half value) {
    return ::tcuda::reinterpret<short>(value);
}
inline unsigned short __half_as_ushort(__half value) {
    return ::tcuda::reinterpret<unsigned short>(value);
}
inline __half __short_as_half(short value) {
    return ::tcuda::reinterpret<__half>(value);
}
inline __half __ushort_as_half(unsigned short value) {
    return ::tcuda::reinterpret<__half>(value);
}

inline __half2 __float2half2_rn(float value) {
    return {value, value};
}
inline __half2 __floats2half2_rn(float low, float high) {
    return {low, high};
}
inline __half2 __float22half2_rn(float2 value) {
    return {value.x, value.y};
}
inline float2 __half22float2(__half2 value) {
    return {value.x, value.y};
}
inline __half2 __halves2half2(__half low, __half high) {
    return {low, high};
}
inline __half2 __half2half2(__half value) {
    return {value, value};
}
inline __half __low2half(__half2 value) {
    return value.x;
}
inline __half __high2half(__half2 value) {
    return value.y;
}
inline __half2 __low2half2(__half2 value) {
    return {value.x, value.x};
}
inline __half2 __high2half2(__half2 value) {
    return {value.y, value.y};
}
inline __half2 __lows2half2(__half2 a, __half2 b) {
    return {a.x, b.x};
}
inline __half2 __highs2half2(__half2 a, __half2 b) {
    return {a.y, b.y};
}

#define TCUDA_SMALL_FLOAT __half
#define TCUDA_SMALL_FLOAT_PAIR __half2
#include "tcuda/small_float_functions.h"
#undef TCUDA_SMALL_FLOAT
#undef TCUDA_SMALL_FLOAT_PAIR

namespace tcuda {

template <>
struct KindOf<__half> {
    static constexpr char value = 'f';
};

}  // namespace tcuda
