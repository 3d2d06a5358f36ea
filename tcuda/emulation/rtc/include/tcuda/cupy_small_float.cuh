// The class that float16 and bfloat16 of CuPy's kernels share. The header of each class defines the names and includes
// this header.

#ifndef TCUDA_SAME_TYPE
#define TCUDA_SAME_TYPE

class float16;
class bfloat16;

namespace tcuda {

template <class T, class Wanted>
struct SameType {};
template <class T>
struct SameType<T, T> {
    typedef void type;
};

}  // namespace tcuda

#endif

class TCUDA_CLASS {
    TCUDA_NUMBER data_;

public:
    TCUDA_CLASS() = default;
    TCUDA_CLASS(float v) : data_(v) {}
    TCUDA_CLASS(const TCUDA_CLASS &) = default;
    TCUDA_CLASS &operator=(const TCUDA_CLASS &) = default;
    explicit TCUDA_CLASS(bool v) : data_(static_cast<float>(v)) {}
    explicit TCUDA_CLASS(double v) : data_(v) {}
    explicit TCUDA_CLASS(int v) : data_(static_cast<float>(v)) {}
    explicit TCUDA_CLASS(unsigned int v) : data_(static_cast<float>(v)) {}
    explicit TCUDA_CLASS(long long v) : data_(static_cast<float>(v)) {}
    explicit TCUDA_CLASS(unsigned long long v) : data_(static_cast<float>(v)) {}
    TCUDA_EXPLICIT TCUDA_CLASS(const TCUDA_NUMBER &v) : data_(v) {}
    explicit TCUDA_CLASS(const TCUDA_NUMBER_RAW &v) : data_(v) {}
    template <class T, class = typename ::tcuda::SameType<T, TCUDA_OTHER_CLASS>::type>
    explicit TCUDA_CLASS(T v) : data_(static_cast<float>(v)) {}

    operator float() const {
        return data_;
    }
    template <class T>
    TCUDA_CLASS &operator=(const T &v) {
        return *this = static_cast<TCUDA_CLASS>(v);
    }

    unsigned short to_bits() const {
        return TCUDA_TO_BITS(data_);
    }
    static TCUDA_CLASS from_bits(unsigned short v) {
        return TCUDA_CLASS(TCUDA_FROM_BITS(v));
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
    TCUDA_CLASS &operator+=(const T &v) {
        return *this = *this + v;
    }
    template <class T>
    TCUDA_CLASS &operator-=(const T &v) {
        return *this = *this - v;
    }
    template <class T>
    TCUDA_CLASS &operator*=(const T &v) {
        return *this = *this * v;
    }
    template <class T>
    TCUDA_CLASS &operator/=(const T &v) {
        return *this = *this / v;
    }

    friend TCUDA_CLASS copysign(TCUDA_CLASS x, TCUDA_CLASS y) {
        return from_bits(static_cast<unsigned short>((x.to_bits() & 0x7fff) | (y.to_bits() & 0x8000)));
    }
    friend TCUDA_CLASS nextafter(TCUDA_CLASS x, TCUDA_CLASS y) {
        unsigned short bits = x.to_bits();
        if (!x.isfinite() || y.isnan()) return from_bits(infinity + 1);
        if (float(x) == float(y)) return x;
        if (x.iszero()) return from_bits(static_cast<unsigned short>((y.to_bits() & 0x8000) + 1));
        bool away = x.signbit() ? float(y) < float(x) : float(y) > float(x);
        return from_bits(static_cast<unsigned short>(away ? bits + 1 : bits - 1));
    }

private:
    static const unsigned short infinity = TCUDA_INFINITY;
};

inline TCUDA_CLASS min(TCUDA_CLASS x, TCUDA_CLASS y) {
    return TCUDA_CLASS(min(float(x), float(y)));
}
inline TCUDA_CLASS max(TCUDA_CLASS x, TCUDA_CLASS y) {
    return TCUDA_CLASS(max(float(x), float(y)));
}
inline TCUDA_CLASS fmin(TCUDA_CLASS x, TCUDA_CLASS y) {
    return TCUDA_CLASS(fmin(float(x), float(y)));
}
inline TCUDA_CLASS fmax(TCUDA_CLASS x, TCUDA_CLASS y) {
    return TCUDA_CLASS(fmax(float(x), float(y)));
}
inline int iszero(TCUDA_CLASS x) {
    return x.iszero();
}
inline int isnan(TCUDA_CLASS x) {
    return x.isnan();
}
inline int isinf(TCUDA_CLASS x) {
    return x.isinf();
}
inline int isfinite(TCUDA_CLASS x) {
    return x.isfinite();
}
inline int signbit(TCUDA_CLASS x) {
    return x.signbit();
}

TCUDA_AT_CALLER inline TCUDA_CLASS atomicAdd(TCUDA_CLASS *address, TCUDA_CLASS value) {
    return ::tcuda::atomically(address, ::tcuda::abi::Scope::device, [=](TCUDA_CLASS old) { return TCUDA_CLASS(float(old) + float(value)); });
}

namespace tcuda {

template <>
struct Conversion<TCUDA_CLASS> {
    template <class To>
    static To to(TCUDA_CLASS value) {
        return cut<To>(static_cast<float>(value));
    }
};

template <>
struct KindOf<TCUDA_CLASS> {
    static constexpr char value = TCUDA_CLASS_KIND;
};

}  // namespace tcuda

#undef TCUDA_CLASS
#undef TCUDA_OTHER_CLASS
#undef TCUDA_NUMBER
#undef TCUDA_NUMBER_RAW
#undef TCUDA_TO_BITS
#undef TCUDA_FROM_BITS
#undef TCUDA_EXPLICIT
#undef TCUDA_INFINITY
#undef TCUDA_CLASS_KIND
