// The types __half and __nv_bfloat16 with their pairs, and the conversions between them and other numbers. The header of
// each type defines the names and includes this header.

#define TCUDA_JOINED(before, word, after) before##word##after
#define TCUDA_EXPANDED(before, word, after) TCUDA_JOINED(before, word, after)
#define TCUDA_NAME(before, after) TCUDA_EXPANDED(before, TCUDA_SMALL_FLOAT_WORD, after)
#define TCUDA_RAW TCUDA_EXPANDED(, TCUDA_SMALL_FLOAT, _raw)
#define TCUDA_RAW_PAIR TCUDA_EXPANDED(, TCUDA_SMALL_FLOAT_PAIR, _raw)

struct __align__(2) TCUDA_RAW {
    unsigned short x;
};
struct __align__(4) TCUDA_RAW_PAIR {
    unsigned short x;
    unsigned short y;
};

struct __align__(2) TCUDA_SMALL_FLOAT {
    TCUDA_SMALL_FLOAT() = default;
    constexpr TCUDA_SMALL_FLOAT(const TCUDA_RAW &raw) : __x(raw.x) {}
    TCUDA_SMALL_FLOAT(float value) : TCUDA_SMALL_FLOAT(static_cast<double>(value)) {}
    TCUDA_SMALL_FLOAT(double value) : __x(::tcuda::encoded<TCUDA_SMALL_FLOAT_FORMAT>(value, ::tcuda::Rounding::nearest)) {}
#define TCUDA_FROM(type) \
    TCUDA_SMALL_FLOAT(type value) : TCUDA_SMALL_FLOAT(::tcuda::exact(value)) {}
    TCUDA_FROM(short)
    TCUDA_FROM(unsigned short)
    TCUDA_FROM(int)
    TCUDA_FROM(unsigned int)
    TCUDA_FROM(long)
    TCUDA_FROM(unsigned long)
    TCUDA_FROM(long long)
    TCUDA_FROM(unsigned long long)
#undef TCUDA_FROM

    operator TCUDA_RAW() const {
        return {__x};
    }
    operator float() const {
        return ::tcuda::decoded<TCUDA_SMALL_FLOAT_FORMAT>(__x);
    }
    constexpr operator bool() const {
        return (__x & 0x7fff) != 0;
    }
#define TCUDA_TO(type) \
    operator type() const { \
        return ::tcuda::clamped<type>(::tcuda::toward_zero(static_cast<float>(*this))); \
    }
    TCUDA_TO(char)
    TCUDA_TO(signed char)
    TCUDA_TO(unsigned char)
    TCUDA_TO(short)
    TCUDA_TO(unsigned short)
    TCUDA_TO(int)
    TCUDA_TO(unsigned int)
    TCUDA_TO(long)
    TCUDA_TO(unsigned long)
    TCUDA_TO(long long)
    TCUDA_TO(unsigned long long)
#undef TCUDA_TO
    template <class Number>
    TCUDA_SMALL_FLOAT &operator=(Number value) {
        return *this = TCUDA_SMALL_FLOAT(value);
    }
    TCUDA_SMALL_FLOAT &operator=(const TCUDA_SMALL_FLOAT &) = default;
    TCUDA_SMALL_FLOAT(const TCUDA_SMALL_FLOAT &) = default;

protected:
    unsigned short __x;
};

struct __align__(4) TCUDA_SMALL_FLOAT_PAIR {
    TCUDA_SMALL_FLOAT x;
    TCUDA_SMALL_FLOAT y;

    TCUDA_SMALL_FLOAT_PAIR() = default;
    constexpr TCUDA_SMALL_FLOAT_PAIR(const TCUDA_SMALL_FLOAT &low, const TCUDA_SMALL_FLOAT &high) : x(low), y(high) {}
    constexpr TCUDA_SMALL_FLOAT_PAIR(const TCUDA_RAW_PAIR &raw) : x(TCUDA_RAW{raw.x}), y(TCUDA_RAW{raw.y}) {}
    operator TCUDA_RAW_PAIR() const {
        return {static_cast<TCUDA_RAW>(x).x, static_cast<TCUDA_RAW>(y).x};
    }
};

inline TCUDA_SMALL_FLOAT_PAIR TCUDA_NAME(make_, 2)(TCUDA_SMALL_FLOAT low, TCUDA_SMALL_FLOAT high) {
    return {low, high};
}
inline float TCUDA_NAME(__, 2float)(TCUDA_SMALL_FLOAT value) {
    return value;
}
inline TCUDA_SMALL_FLOAT TCUDA_NAME(__float2, )(float value) {
    return value;
}
inline TCUDA_SMALL_FLOAT TCUDA_NAME(__double2, )(double value) {
    return value;
}

#define TCUDA_INTEGER(name, type, mode, rounded, rounding) \
    inline type TCUDA_NAME(__, 2##name##mode)(TCUDA_SMALL_FLOAT value) { \
        return ::tcuda::clamped<type>(::tcuda::rounded(static_cast<float>(value))); \
    } \
    inline TCUDA_SMALL_FLOAT TCUDA_NAME(__##name##2, mode)(type value) { \
        return TCUDA_RAW{::tcuda::encoded<TCUDA_SMALL_FLOAT_FORMAT>(::tcuda::exact(value), ::tcuda::Rounding::rounding)}; \
    }
#define TCUDA_CONVERSION(mode, rounded, rounding) \
    inline TCUDA_SMALL_FLOAT TCUDA_NAME(__float2, mode)(float value) { \
        return TCUDA_RAW{::tcuda::encoded<TCUDA_SMALL_FLOAT_FORMAT>(value, ::tcuda::Rounding::rounding)}; \
    } \
    TCUDA_INTEGER(short, short, mode, rounded, rounding) \
    TCUDA_INTEGER(ushort, unsigned short, mode, rounded, rounding) \
    TCUDA_INTEGER(int, int, mode, rounded, rounding) \
    TCUDA_INTEGER(uint, unsigned int, mode, rounded, rounding) \
    TCUDA_INTEGER(ll, long long, mode, rounded, rounding) \
    TCUDA_INTEGER(ull, unsigned long long, mode, rounded, rounding)
TCUDA_CONVERSION(_rn, to_nearest, nearest)
TCUDA_CONVERSION(_rz, toward_zero, toward_zero)
TCUDA_CONVERSION(_ru, upward, upward)
TCUDA_CONVERSION(_rd, downward, downward)
#undef TCUDA_CONVERSION
#undef TCUDA_INTEGER

inline signed char TCUDA_NAME(__, 2char_rz)(TCUDA_SMALL_FLOAT value) {
    return value;
}
inline unsigned char TCUDA_NAME(__, 2uchar_rz)(TCUDA_SMALL_FLOAT value) {
    return value;
}
inline short TCUDA_NAME(__, _as_short)(TCUDA_SMALL_FLOAT value) {
    return ::tcuda::reinterpret<short>(value);
}
inline unsigned short TCUDA_NAME(__, _as_ushort)(TCUDA_SMALL_FLOAT value) {
    return ::tcuda::reinterpret<unsigned short>(value);
}
inline TCUDA_SMALL_FLOAT TCUDA_NAME(__short_as_, )(short value) {
    return ::tcuda::reinterpret<TCUDA_SMALL_FLOAT>(value);
}
inline TCUDA_SMALL_FLOAT TCUDA_NAME(__ushort_as_, )(unsigned short value) {
    return ::tcuda::reinterpret<TCUDA_SMALL_FLOAT>(value);
}

inline TCUDA_SMALL_FLOAT_PAIR TCUDA_NAME(__float2, 2_rn)(float value) {
    return {value, value};
}
inline TCUDA_SMALL_FLOAT_PAIR TCUDA_NAME(__floats2, 2_rn)(float low, float high) {
    return {low, high};
}
inline TCUDA_SMALL_FLOAT_PAIR TCUDA_NAME(__float22, 2_rn)(float2 value) {
    return {value.x, value.y};
}
inline float2 TCUDA_NAME(__, 22float2)(TCUDA_SMALL_FLOAT_PAIR value) {
    return {value.x, value.y};
}
inline TCUDA_SMALL_FLOAT_PAIR TCUDA_NAME(__halves2, 2)(TCUDA_SMALL_FLOAT low, TCUDA_SMALL_FLOAT high) {
    return {low, high};
}
inline TCUDA_SMALL_FLOAT_PAIR TCUDA_EXPANDED(TCUDA_NAME(__, 2), TCUDA_SMALL_FLOAT_WORD, 2)(TCUDA_SMALL_FLOAT value) {
    return {value, value};
}
inline TCUDA_SMALL_FLOAT TCUDA_NAME(__low2, )(TCUDA_SMALL_FLOAT_PAIR value) {
    return value.x;
}
inline TCUDA_SMALL_FLOAT TCUDA_NAME(__high2, )(TCUDA_SMALL_FLOAT_PAIR value) {
    return value.y;
}
inline TCUDA_SMALL_FLOAT_PAIR TCUDA_NAME(__low2, 2)(TCUDA_SMALL_FLOAT_PAIR value) {
    return {value.x, value.x};
}
inline TCUDA_SMALL_FLOAT_PAIR TCUDA_NAME(__high2, 2)(TCUDA_SMALL_FLOAT_PAIR value) {
    return {value.y, value.y};
}
inline TCUDA_SMALL_FLOAT_PAIR TCUDA_NAME(__lows2, 2)(TCUDA_SMALL_FLOAT_PAIR a, TCUDA_SMALL_FLOAT_PAIR b) {
    return {a.x, b.x};
}
inline TCUDA_SMALL_FLOAT_PAIR TCUDA_NAME(__highs2, 2)(TCUDA_SMALL_FLOAT_PAIR a, TCUDA_SMALL_FLOAT_PAIR b) {
    return {a.y, b.y};
}

#undef TCUDA_RAW_PAIR
#undef TCUDA_RAW
#undef TCUDA_NAME
#undef TCUDA_EXPANDED
#undef TCUDA_JOINED
