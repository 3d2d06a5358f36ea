// The class `float16` of CuPy's kernels.
#pragma once

#include <cuda_fp16.h>

class float16;
class bfloat16;

namespace tcuda {

template <class T>
struct IsOtherfloat16 {};
template <>
struct IsOtherfloat16<bfloat16> {
    typedef void type;
};

}  // namespace tcuda

class float16 {
    __half data_;

public:
    float16() = default;
    float16(float v) : data_(v) {}
    float16(const float16 &) = default;
    float16 &operator=(const float16 &) = default;
    explicit float16(bool v) : data_(static_cast<float>(v)) {}
    explicit float16(double v) : data_(v) {}
    explicit float16(int v) : data_(static_cast<float>(v)) {}
    explicit float16(unsigned int v) : data_(static_cast<float>(v)) {}
    explicit float16(long long v) : data_(static_cast<float>(v)) {}
    explicit float16(unsigned long long v) : data_(static_cast<float>(v)) {}
    explicit float16(const __half &v) : data_(v) {}
    explicit float16(const __half_raw &v) : data_(v) {}
    template <class T, class = typename ::tcuda::IsOtherfloat16<T>::type>
    explicit float16(T v) : data_(static_cast<float>(v)) {}

    operator float() const {
        return data_;
    }
    template <class T>
    float16 &operator=(const T &v) {
        return *this = static_cast<float16>(v);
    }

    unsigned short to_bits() const {
        return __half_as_ushort(data_);
    }
    static float16 from_bits(unsigned short v) {
        return float16(__ushort_as_half(v));
    }
    int iszero() const {
        return (to_bits() & 0x7fff) == 0;
    }
    int isnan() const {
        return (to_bits() & 0x7fff) > infinity;
    }
    int isinf() const {
        return (to_bits() & 0x7fff) == infinity;
    }
    int isfinite() const {
        return (to_bits() & 0x7fff) < infinity;
    }
    int signbit() const {
        return to_bits() >> 15;
    }
    template <class T>
    float16 &operator+=(const T &v) {
        return *this = *this + v;
    }
    template <class T>
    float16 &operator-=(const T &v) {
        return *this = *this - v;
    }
    template <class T>
    float16 &operator*=(const T &v) {
        return *this = *this * v;
    }
    template <class T>
    float16 &operator/=(const T &v) {
        return *this = *this / v;
    }

    friend float16 copysign(float16 x, float16 y) {
        return from_bits(static_cast<unsigned short>((x.to_bits() & 0x7fff) | (y.to_bits() & 0x8000)));
    }
    friend float16 nextafter(float16 x, float16 y) {
        unsigned short bits = x.to_bits();
        if (!x.isfinite() || y.isnan()) return from_bits(infinity + 1);
        if (float(x) == float(y)) return x;
        if (x.iszero()) return from_bits(static_cast<unsigned short>((y.to_bits() & 0x8000) + 1));
        bool away = x.signbit() ? float(y) < float(x) : float(y) > float(x);
        return from_bits(static_cast<unsigned short>(away ? bits + 1 : bits - 1));
    }

private:
    static const unsigned short infinity = 0x7c00;
};

inline float16 min(float16 x, float16 y) {
    return float16(min(float(x), float(y)));
}
inline float16 max(float16 x, float16 y) {
    return float16(max(float(x), float(y)));
}
inline float16 fmin(float16 x, float16 y) {
    return float16(fmin(float(x), float(y)));
}
inline float16 fmax(float16 x, float16 y) {
    return float16(fmax(float(x), float(y)));
}
inline int iszero(float16 x) {
    return x.iszero();
}
inline int isnan(float16 x) {
    return x.isnan();
}
inline int isinf(float16 x) {
    return x.isinf();
}
inline int isfinite(float16 x) {
    return x.isfinite();
}
inline int signbit(float16 x) {
    return x.signbit();
}

inline float16 atomicAdd(float16 *address, float16 value) {
    return ::tcuda::atomically(address, [=](float16 old) { return float16(float(old) + float(value)); });
}

namespace tcuda {

template <>
struct KindOf<float16> {
    static constexpr char value = 'f';
};

}  // namespace tcuda
