// The brain floating-point format: the types and functions of cuda_bf16.h.
#pragma once

#include "tcuda/device.h"
#include "tcuda/small_float.h"

struct __align__(2) __nv_bfloat16_raw {
    unsigned short x;
};
struct __align__(4) __nv_bfloat162_raw {
    unsigned short x;
    unsigned short y;
};

struct __align__(2) __nv_bfloat16 {
    __nv_bfloat16() = default;
    constexpr __nv_bfloat16(const __nv_bfloat16_raw &raw) : __x(raw.x) {}
    __nv_bfloat16(float value) : __nv_bfloat16(static_cast<double>(value)) {}
    __nv_bfloat16(double value) : __x(::tcuda::encoded<7, 127>(value, ::tcuda::Rounding::nearest)) {}
    __nv_bfloat16(short value) : __nv_bfloat16(::tcuda::exact(value)) {}
    __nv_bfloat16(unsigned short value) : __nv_bfloat16(::tcuda::exact(value)) {}
    __nv_bfloat16(int value) : __nv_bfloat16(::tcuda::exact(value)) {}
    __nv_bfloat16(unsigned int value) : __nv_bfloat16(::tcuda::exact(value)) {}
    __nv_bfloat16(long value) : __nv_bfloat16(::tcuda::exact(value)) {}
    __nv_bfloat16(unsigned long value) : __nv_bfloat16(::tcuda::exact(value)) {}
    __nv_bfloat16(long long value) : __nv_bfloat16(::tcuda::exact(value)) {}
    __nv_bfloat16(unsigned long long value) : __nv_bfloat16(::tcuda::exact(value)) {}

    operator __nv_bfloat16_raw() const {
        return {__x};
    }
    operator float() const {
        return ::tcuda::decoded<7, 127>(__x);
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
    __nv_bfloat16 &operator=(Number value) {
        return *this = __nv_bfloat16(value);
    }
    __nv_bfloat16 &operator=(const __nv_bfloat16 &) = default;
    __nv_bfloat16(const __nv_bfloat16 &) = default;

protected:
    unsigned short __x;
};

struct __align__(4) __nv_bfloat162 {
    __nv_bfloat16 x;
    __nv_bfloat16 y;

    __nv_bfloat162() = default;
    constexpr __nv_bfloat162(const __nv_bfloat16 &low, const __nv_bfloat16 &high) : x(low), y(high) {}
    constexpr __nv_bfloat162(const __nv_bfloat162_raw &raw) : x(__nv_bfloat16_raw{raw.x}), y(__nv_bfloat16_raw{raw.y}) {}
    operator __nv_bfloat162_raw() const {
        return {static_cast<__nv_bfloat16_raw>(x).x, static_cast<__nv_bfloat16_raw>(y).x};
    }
};

using nv_bfloat16 = __nv_bfloat16;
using nv_bfloat162 = __nv_bfloat162;

inline __nv_bfloat162 make_bfloat162(__nv_bfloat16 low, __nv_bfloat16 high) {
    return {low, high};
}
inline float __bfloat162float(__nv_bfloat16 value) {
    return value;
}
inline __nv_bfloat16 __float2bfloat16(float value) {
    return value;
}
inline __nv_bfloat16 __double2bfloat16(double value) {
    return value;
}
inline __nv_bfloat16 __float2bfloat16_rn(float value) {
    return __nv_bfloat16_raw{::tcuda::encoded<7, 127>(value, ::tcuda::Rounding::nearest)};
}
inline short __bfloat162short_rn(__nv_bfloat16 value) {
    return ::tcuda::clamped<short>(::tcuda::to_nearest(static_cast<float>(value)));
}
inline __nv_bfloat16 __short2bfloat16_rn(short value) {
    return __nv_bfloat16_raw{::tcuda::encoded<7, 127>(::tcuda::exact(value), ::tcuda::Rounding::nearest)};
}
inline unsigned short __bfloat162ushort_rn(__nv_bfloat16 value) {
    return ::tcuda::clamped<unsigned short>(::tcuda::to_nearest(static_cast<float>(value)));
}
inline __nv_bfloat16 __ushort2bfloat16_rn(unsigned short value) {
    return __nv_bfloat16_raw{::tcuda::encoded<7, 127>(::tcuda::exact(value), ::tcuda::Rounding::nearest)};
}
inline int __bfloat162int_rn(__nv_bfloat16 value) {
    return ::tcuda::clamped<int>(::tcuda::to_nearest(static_cast<float>(value)));
}
inline __nv_bfloat16 __int2bfloat16_rn(int value) {
    return __nv_bfloat16_raw{::tcuda::encoded<7, 127>(::tcuda::exact(value), ::tcuda::Rounding::nearest)};
}
inline unsigned int __bfloat162uint_rn(__nv_bfloat16 value) {
    return ::tcuda::clamped<unsigned int>(::tcuda::to_nearest(static_cast<float>(value)));
}
inline __nv_bfloat16 __uint2bfloat16_rn(unsigned int value) {
    return __nv_bfloat16_raw{::tcuda::encoded<7, 127>(::tcuda::exact(value), ::tcuda::Rounding::nearest)};
}
inline long long __bfloat162ll_rn(__nv_bfloat16 value) {
    return ::tcuda::clamped<long long>(::tcuda::to_nearest(static_cast<float>(value)));
}
inline __nv_bfloat16 __ll2bfloat16_rn(long long value) {
    return __nv_bfloat16_raw{::tcuda::encoded<7, 127>(::tcuda::exact(value), ::tcuda::Rounding::nearest)};
}
inline unsigned long long __bfloat162ull_rn(__nv_bfloat16 value) {
    return ::tcuda::clamped<unsigned long long>(::tcuda::to_nearest(static_cast<float>(value)));
}
inline __nv_bfloat16 __ull2bfloat16_rn(unsigned long long value) {
    return __nv_bfloat16_raw{::tcuda::encoded<7, 127>(::tcuda::exact(value), ::tcuda::Rounding::nearest)};
}
inline __nv_bfloat16 __float2bfloat16_rz(float value) {
    return __nv_bfloat16_raw{::tcuda::encoded<7, 127>(value, ::tcuda::Rounding::toward_zero)};
}
inline short __bfloat162short_rz(__nv_bfloat16 value) {
    return ::tcuda::clamped<short>(::tcuda::toward_zero(static_cast<float>(value)));
}
inline __nv_bfloat16 __short2bfloat16_rz(short value) {
    return __nv_bfloat16_raw{::tcuda::encoded<7, 127>(::tcuda::exact(value), ::tcuda::Rounding::toward_zero)};
}
inline unsigned short __bfloat162ushort_rz(__nv_bfloat16 value) {
    return ::tcuda::clamped<unsigned short>(::tcuda::toward_zero(static_cast<float>(value)));
}
inline __nv_bfloat16 __ushort2bfloat16_rz(unsigned short value) {
    return __nv_bfloat16_raw{::tcuda::encoded<7, 127>(::tcuda::exact(value), ::tcuda::Rounding::toward_zero)};
}
inline int __bfloat162int_rz(__nv_bfloat16 value) {
    return ::tcuda::clamped<int>(::tcuda::toward_zero(static_cast<float>(value)));
}
inline __nv_bfloat16 __int2bfloat16_rz(int value) {
    return __nv_bfloat16_raw{::tcuda::encoded<7, 127>(::tcuda::exact(value), ::tcuda::Rounding::toward_zero)};
}
inline unsigned int __bfloat162uint_rz(__nv_bfloat16 value) {
    return ::tcuda::clamped<unsigned int>(::tcuda::toward_zero(static_cast<float>(value)));
}
inline __nv_bfloat16 __uint2bfloat16_rz(unsigned int value) {
    return __nv_bfloat16_raw{::tcuda::encoded<7, 127>(::tcuda::exact(value), ::tcuda::Rounding::toward_zero)};
}
inline long long __bfloat162ll_rz(__nv_bfloat16 value) {
    return ::tcuda::clamped<long long>(::tcuda::toward_zero(static_cast<float>(value)));
}
inline __nv_bfloat16 __ll2bfloat16_rz(long long value) {
    return __nv_bfloat16_raw{::tcuda::encoded<7, 127>(::tcuda::exact(value), ::tcuda::Rounding::toward_zero)};
}
inline unsigned long long __bfloat162ull_rz(__nv_bfloat16 value) {
    return ::tcuda::clamped<unsigned long long>(::tcuda::toward_zero(static_cast<float>(value)));
}
inline __nv_bfloat16 __ull2bfloat16_rz(unsigned long long value) {
    return __nv_bfloat16_raw{::tcuda::encoded<7, 127>(::tcuda::exact(value), ::tcuda::Rounding::toward_zero)};
}
inline __nv_bfloat16 __float2bfloat16_ru(float value) {
    return __nv_bfloat16_raw{::tcuda::encoded<7, 127>(value, ::tcuda::Rounding::upward)};
}
inline short __bfloat162short_ru(__nv_bfloat16 value) {
    return ::tcuda::clamped<short>(::tcuda::upward(static_cast<float>(value)));
}
inline __nv_bfloat16 __short2bfloat16_ru(short value) {
    return __nv_bfloat16_raw{::tcuda::encoded<7, 127>(::tcuda::exact(value), ::tcuda::Rounding::upward)};
}
inline unsigned short __bfloat162ushort_ru(__nv_bfloat16 value) {
    return ::tcuda::clamped<unsigned short>(::tcuda::upward(static_cast<float>(value)));
}
inline __nv_bfloat16 __ushort2bfloat16_ru(unsigned short value) {
    return __nv_bfloat16_raw{::tcuda::encoded<7, 127>(::tcuda::exact(value), ::tcuda::Rounding::upward)};
}
inline int __bfloat162int_ru(__nv_bfloat16 value) {
    return ::tcuda::clamped<int>(::tcuda::upward(static_cast<float>(value)));
}
inline __nv_bfloat16 __int2bfloat16_ru(int value) {
    return __nv_bfloat16_raw{::tcuda::encoded<7, 127>(::tcuda::exact(value), ::tcuda::Rounding::upward)};
}
inline unsigned int __bfloat162uint_ru(__nv_bfloat16 value) {
    return ::tcuda::clamped<unsigned int>(::tcuda::upward(static_cast<float>(value)));
}
inline __nv_bfloat16 __uint2bfloat16_ru(unsigned int value) {
    return __nv_bfloat16_raw{::tcuda::encoded<7, 127>(::tcuda::exact(value), ::tcuda::Rounding::upward)};
}
inline long long __bfloat162ll_ru(__nv_bfloat16 value) {
    return ::tcuda::clamped<long long>(::tcuda::upward(static_cast<float>(value)));
}
inline __nv_bfloat16 __ll2bfloat16_ru(long long value) {
    return __nv_bfloat16_raw{::tcuda::encoded<7, 127>(::tcuda::exact(value), ::tcuda::Rounding::upward)};
}
inline unsigned long long __bfloat162ull_ru(__nv_bfloat16 value) {
    return ::tcuda::clamped<unsigned long long>(::tcuda::upward(static_cast<float>(value)));
}
inline __nv_bfloat16 __ull2bfloat16_ru(unsigned long long value) {
    return __nv_bfloat16_raw{::tcuda::encoded<7, 127>(::tcuda::exact(value), ::tcuda::Rounding::upward)};
}
inline __nv_bfloat16 __float2bfloat16_rd(float value) {
    return __nv_bfloat16_raw{::tcuda::encoded<7, 127>(value, ::tcuda::Rounding::downward)};
}
inline short __bfloat162short_rd(__nv_bfloat16 value) {
    return ::tcuda::clamped<short>(::tcuda::downward(static_cast<float>(value)));
}
inline __nv_bfloat16 __short2bfloat16_rd(short value) {
    return __nv_bfloat16_raw{::tcuda::encoded<7, 127>(::tcuda::exact(value), ::tcuda::Rounding::downward)};
}
inline unsigned short __bfloat162ushort_rd(__nv_bfloat16 value) {
    return ::tcuda::clamped<unsigned short>(::tcuda::downward(static_cast<float>(value)));
}
inline __nv_bfloat16 __ushort2bfloat16_rd(unsigned short value) {
    return __nv_bfloat16_raw{::tcuda::encoded<7, 127>(::tcuda::exact(value), ::tcuda::Rounding::downward)};
}
inline int __bfloat162int_rd(__nv_bfloat16 value) {
    return ::tcuda::clamped<int>(::tcuda::downward(static_cast<float>(value)));
}
inline __nv_bfloat16 __int2bfloat16_rd(int value) {
    return __nv_bfloat16_raw{::tcuda::encoded<7, 127>(::tcuda::exact(value), ::tcuda::Rounding::downward)};
}
inline unsigned int __bfloat162uint_rd(__nv_bfloat16 value) {
    return ::tcuda::clamped<unsigned int>(::tcuda::downward(static_cast<float>(value)));
}
inline __nv_bfloat16 __uint2bfloat16_rd(unsigned int value) {
    return __nv_bfloat16_raw{::tcuda::encoded<7, 127>(::tcuda::exact(value), ::tcuda::Rounding::downward)};
}
inline long long __bfloat162ll_rd(__nv_bfloat16 value) {
    return ::tcuda::clamped<long long>(::tcuda::downward(static_cast<float>(value)));
}
inline __nv_bfloat16 __ll2bfloat16_rd(long long value) {
    return __nv_bfloat16_raw{::tcuda::encoded<7, 127>(::tcuda::exact(value), ::tcuda::Rounding::downward)};
}
inline unsigned long long __bfloat162ull_rd(__nv_bfloat16 value) {
    return ::tcuda::clamped<unsigned long long>(::tcuda::downward(static_cast<float>(value)));
}
inline __nv_bfloat16 __ull2bfloat16_rd(unsigned long long value) {
    return __nv_bfloat16_raw{::tcuda::encoded<7, 127>(::tcuda::exact(value), ::tcuda::Rounding::downward)};
}
inline signed char __bfloat162char_rz(__nv_bfloat16 value) {
    return value;
}
inline unsigned char __bfloat162uchar_rz(__nv_bfloat16 value) {
    return value;
}
inline short __bfloat16_as_short(__nv_bfloat16 value) {
    return ::tcuda::reinterpret<short>(value);
}
inline unsigned short __bfloat16_as_ushort(__nv_bfloat16 value) {
    return ::tcuda::reinterpret<unsigned short>(value);
}
inline __nv_bfloat16 __short_as_bfloat16(short value) {
    return ::tcuda::reinterpret<__nv_bfloat16>(value);
}
inline __nv_bfloat16 __ushort_as_bfloat16(unsigned short value) {
    return ::tcuda::reinterpret<__nv_bfloat16>(value);
}

inline __nv_bfloat162 __float2bfloat162_rn(float value) {
    return {value, value};
}
inline __nv_bfloat162 __floats2bfloat162_rn(float low, float high) {
    return {low, high};
}
inline __nv_bfloat162 __float22bfloat162_rn(float2 value) {
    return {value.x, value.y};
}
inline float2 __bfloat1622float2(__nv_bfloat162 value) {
    return {value.x, value.y};
}
inline __nv_bfloat162 __halves2bfloat162(__nv_bfloat16 low, __nv_bfloat16 high) {
    return {low, high};
}
inline __nv_bfloat162 __bfloat162bfloat162(__nv_bfloat16 value) {
    return {value, value};
}
inline __nv_bfloat16 __low2bfloat16(__nv_bfloat162 value) {
    return value.x;
}
inline __nv_bfloat16 __high2bfloat16(__nv_bfloat162 value) {
    return value.y;
}
inline __nv_bfloat162 __low2bfloat162(__nv_bfloat162 value) {
    return {value.x, value.x};
}
inline __nv_bfloat162 __high2bfloat162(__nv_bfloat162 value) {
    return {value.y, value.y};
}
inline __nv_bfloat162 __lows2bfloat162(__nv_bfloat162 a, __nv_bfloat162 b) {
    return {a.x, b.x};
}
inline __nv_bfloat162 __highs2bfloat162(__nv_bfloat162 a, __nv_bfloat162 b) {
    return {a.y, b.y};
}

#define TCUDA_SMALL_FLOAT __nv_bfloat16
#define TCUDA_SMALL_FLOAT_PAIR __nv_bfloat162
#include "tcuda/small_float_functions.h"
#undef TCUDA_SMALL_FLOAT
#undef TCUDA_SMALL_FLOAT_PAIR

namespace tcuda {

template <>
struct KindOf<__nv_bfloat16> {
    static constexpr char value = 'g';
};

}  // namespace tcuda
