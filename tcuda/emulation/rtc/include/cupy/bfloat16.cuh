// The class `bfloat16` of CuPy's kernels.
#pragma once

#include <cuda_bf16.h>

class float16;
class bfloat16;

namespace tcuda {

template <class T>
struct IsOtherbfloat16 {};
template <>
struct IsOtherbfloat16<float16> {
    typedef void type;
};

}  // namespace tcuda

class bfloat16 {
    __nv_bfloat16 data_;

public:
    bfloat16() = default;
    bfloat16(float v) : data_(v) {}
    bfloat16(const bfloat16 &) = default;
    bfloat16 &operator=(const bfloat16 &) = default;
    explicit bfloat16(bool v) : data_(static_cast<float>(v)) {}
    explicit bfloat16(double v) : data_(v) {}
    explicit bfloat16(int v) : data_(static_cast<float>(v)) {}
    explicit bfloat16(unsigned int v) : data_(static_cast<float>(v)) {}
    explicit bfloat16(long long v) : data_(static_cast<float>(v)) {}
    explicit bfloat16(unsigned long long v) : data_(static_cast<float>(v)) {}
    bfloat16(const __nv_bfloat16 &v) : data_(v) {}
    explicit bfloat16(const __nv_bfloat16_raw &v) : data_(v) {}
    template <class T, class = typename ::tcuda::IsOtherbfloat16<T>::type>
    explicit bfloat16(T v) : data_(static_cast<float>(v)) {}

    operator float() const {
        return data_;
    }
    template <class T>
    bfloat16 &operator=(const T &v) {
        return *this = static_cast<bfloat16>(v);
    }

    unsigned short to_bits() const {
        return __bfloat16_as_ushort(data_);
    }
    static bfloat16 from_bits(unsigned short v) {
        return bfloat16(__ushort_as_bfloat16(v));
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
    bfloat16 &operator+=(const T &v) {
        return *this = *this + v;
    }
    template <class T>
    bfloat16 &operator-=(const T &v) {
        return *this = *this - v;
    }
    template <class T>
    bfloat16 &operator*=(const T &v) {
        return *this = *this * v;
    }
    template <class T>
    bfloat16 &operator/=(const T &v) {
        return *this = *this / v;
    }

    friend bfloat16 copysign(bfloat16 x, bfloat16 y) {
        return from_bits(static_cast<unsigned short>((x.to_bits() & 0x7fff) | (y.to_bits() & 0x8000)));
    }
    friend bfloat16 nextafter(bfloat16 x, bfloat16 y) {
        unsigned short bits = x.to_bits();
        if (!x.isfinite() || y.isnan()) return from_bits(infinity + 1);
        if (float(x) == float(y)) return x;
        if (x.iszero()) return from_bits(static_cast<unsigned short>((y.to_bits() & 0x8000) + 1));
        bool away = x.signbit() ? float(y) < float(x) : float(y) > float(x);
        return from_bits(static_cast<unsigned short>(away ? bits + 1 : bits - 1));
    }

private:
    static const unsigned short infinity = 0x7f80;
};

inline bfloat16 min(bfloat16 x, bfloat16 y) {
    return bfloat16(min(float(x), float(y)));
}
inline bfloat16 max(bfloat16 x, bfloat16 y) {
    return bfloat16(max(float(x), float(y)));
}
inline bfloat16 fmin(bfloat16 x, bfloat16 y) {
    return bfloat16(fmin(float(x), float(y)));
}
inline bfloat16 fmax(bfloat16 x, bfloat16 y) {
    return bfloat16(fmax(float(x), float(y)));
}
inline int iszero(bfloat16 x) {
    return x.iszero();
}
inline int isnan(bfloat16 x) {
    return x.isnan();
}
inline int isinf(bfloat16 x) {
    return x.isinf();
}
inline int isfinite(bfloat16 x) {
    return x.isfinite();
}
inline int signbit(bfloat16 x) {
    return x.signbit();
}

inline bfloat16 atomicAdd(bfloat16 *address, bfloat16 value) {
    return ::tcuda::atomically(address, [=](bfloat16 old) { return bfloat16(float(old) + float(value)); });
}

namespace tcuda {

template <>
struct KindOf<bfloat16> {
    static constexpr char value = 'g';
};

}  // namespace tcuda
