// The functions that __half and __nv_bfloat16 share. The header of each type defines the names and includes this header.
// Single precision holds the exact sum and product of two such numbers, or its rounding does not change the result.

inline float __low2float(TCUDA_SMALL_FLOAT_PAIR value) {
    return value.x;
}
inline float __high2float(TCUDA_SMALL_FLOAT_PAIR value) {
    return value.y;
}
inline TCUDA_SMALL_FLOAT_PAIR __lowhigh2highlow(TCUDA_SMALL_FLOAT_PAIR value) {
    return {value.y, value.x};
}

#define TCUDA_PAIRWISE_ONE(name, pair_name) \
    inline TCUDA_SMALL_FLOAT_PAIR pair_name(TCUDA_SMALL_FLOAT_PAIR a) { \
        return {name(a.x), name(a.y)}; \
    }
#define TCUDA_PAIRWISE_TWO(name, pair_name) \
    inline TCUDA_SMALL_FLOAT_PAIR pair_name(TCUDA_SMALL_FLOAT_PAIR a, TCUDA_SMALL_FLOAT_PAIR b) { \
        return {name(a.x, b.x), name(a.y, b.y)}; \
    }
#define TCUDA_PAIRWISE_THREE(name, pair_name) \
    inline TCUDA_SMALL_FLOAT_PAIR pair_name(TCUDA_SMALL_FLOAT_PAIR a, TCUDA_SMALL_FLOAT_PAIR b, TCUDA_SMALL_FLOAT_PAIR c) { \
        return {name(a.x, b.x, c.x), name(a.y, b.y, c.y)}; \
    }

#define TCUDA_ONE(name, pair_name, expression) \
    inline TCUDA_SMALL_FLOAT name(TCUDA_SMALL_FLOAT number) { \
        float x = number; \
        return static_cast<float>(expression); \
    } \
    TCUDA_PAIRWISE_ONE(name, pair_name)
#define TCUDA_TWO(name, pair_name, expression) \
    inline TCUDA_SMALL_FLOAT name(TCUDA_SMALL_FLOAT first, TCUDA_SMALL_FLOAT second) { \
        float x = first, y = second; \
        return static_cast<float>(expression); \
    } \
    TCUDA_PAIRWISE_TWO(name, pair_name)
#define TCUDA_FUSED(name, pair_name, expression) \
    inline TCUDA_SMALL_FLOAT name(TCUDA_SMALL_FLOAT first, TCUDA_SMALL_FLOAT second, TCUDA_SMALL_FLOAT third) { \
        double x = static_cast<float>(first), y = static_cast<float>(second), z = static_cast<float>(third); \
        return expression; \
    } \
    TCUDA_PAIRWISE_THREE(name, pair_name)

TCUDA_TWO(__hadd, __hadd2, x + y)
TCUDA_TWO(__hadd_rn, __hadd2_rn, x + y)
TCUDA_TWO(__hadd_sat, __hadd2_sat, __saturatef(TCUDA_SMALL_FLOAT(x + y)))
TCUDA_TWO(__hsub, __hsub2, x - y)
TCUDA_TWO(__hsub_rn, __hsub2_rn, x - y)
TCUDA_TWO(__hsub_sat, __hsub2_sat, __saturatef(TCUDA_SMALL_FLOAT(x - y)))
TCUDA_TWO(__hmul, __hmul2, x * y)
TCUDA_TWO(__hmul_rn, __hmul2_rn, x * y)
TCUDA_TWO(__hmul_sat, __hmul2_sat, __saturatef(TCUDA_SMALL_FLOAT(x * y)))
TCUDA_TWO(__hdiv, __h2div, x / y)
TCUDA_FUSED(__hfma, __hfma2, __builtin_fma(x, y, z))
TCUDA_FUSED(__hfma_sat, __hfma2_sat, __saturatef(static_cast<float>(__builtin_fma(x, y, z))))
TCUDA_FUSED(__hfma_relu, __hfma2_relu, ::tcuda::positive_part(__builtin_fma(x, y, z)))
TCUDA_ONE(__habs, __habs2, __builtin_fabsf(x))
TCUDA_ONE(__hneg, __hneg2, -x)
TCUDA_TWO(__hmax, __hmax2, __builtin_fmaxf(x, y))
TCUDA_TWO(__hmin, __hmin2, __builtin_fminf(x, y))
TCUDA_TWO(__hmax_nan, __hmax2_nan, x != x || y != y ? __builtin_nanf("") : __builtin_fmaxf(x, y))
TCUDA_TWO(__hmin_nan, __hmin2_nan, x != x || y != y ? __builtin_nanf("") : __builtin_fminf(x, y))

TCUDA_ONE(hceil, h2ceil, __builtin_ceilf(x))
TCUDA_ONE(hfloor, h2floor, __builtin_floorf(x))
TCUDA_ONE(hrint, h2rint, __builtin_rintf(x))
TCUDA_ONE(htrunc, h2trunc, __builtin_truncf(x))
TCUDA_ONE(hcos, h2cos, __builtin_cosf(x))
TCUDA_ONE(hsin, h2sin, __builtin_sinf(x))
TCUDA_ONE(hexp, h2exp, __builtin_expf(x))
TCUDA_ONE(hexp2, h2exp2, __builtin_exp2f(x))
TCUDA_ONE(hexp10, h2exp10, exp10f(x))
TCUDA_ONE(hlog, h2log, __builtin_logf(x))
TCUDA_ONE(hlog2, h2log2, __builtin_log2f(x))
TCUDA_ONE(hlog10, h2log10, __builtin_log10f(x))
TCUDA_ONE(hrcp, h2rcp, 1.0f / x)
TCUDA_ONE(hrsqrt, h2rsqrt, 1.0 / __builtin_sqrt(x))
TCUDA_ONE(hsqrt, h2sqrt, __builtin_sqrtf(x))
TCUDA_ONE(htanh, h2tanh, __builtin_tanhf(x))
#undef TCUDA_ONE
#undef TCUDA_TWO
#undef TCUDA_FUSED
#undef TCUDA_PAIRWISE_ONE
#undef TCUDA_PAIRWISE_TWO
#undef TCUDA_PAIRWISE_THREE

// Comparisons with NaN: the functions with plain names return false, and the functions with u in the name return true.
#define TCUDA_COMPARE_AS(name, expression) \
    inline bool __h##name(TCUDA_SMALL_FLOAT first, TCUDA_SMALL_FLOAT second) { \
        float x = first, y = second; \
        return expression; \
    } \
    inline TCUDA_SMALL_FLOAT_PAIR __h##name##2(TCUDA_SMALL_FLOAT_PAIR a, TCUDA_SMALL_FLOAT_PAIR b) { \
        return {__h##name(a.x, b.x) ? 1.0f : 0.0f, __h##name(a.y, b.y) ? 1.0f : 0.0f}; \
    } \
    inline unsigned int __h##name##2_mask(TCUDA_SMALL_FLOAT_PAIR a, TCUDA_SMALL_FLOAT_PAIR b) { \
        return (__h##name(a.x, b.x) ? 0xffffu : 0u) | (__h##name(a.y, b.y) ? 0xffff0000u : 0u); \
    } \
    inline bool __hb##name##2(TCUDA_SMALL_FLOAT_PAIR a, TCUDA_SMALL_FLOAT_PAIR b) { \
        return __h##name(a.x, b.x) && __h##name(a.y, b.y); \
    }
#define TCUDA_COMPARE(name, operation) \
    TCUDA_COMPARE_AS(name, x operation y && x == x && y == y) \
    TCUDA_COMPARE_AS(name##u, x operation y || x != x || y != y)
TCUDA_COMPARE(eq, ==)
TCUDA_COMPARE(ne, !=)
TCUDA_COMPARE(lt, <)
TCUDA_COMPARE(le, <=)
TCUDA_COMPARE(gt, >)
TCUDA_COMPARE(ge, >=)
#undef TCUDA_COMPARE
#undef TCUDA_COMPARE_AS

inline bool __hisnan(TCUDA_SMALL_FLOAT value) {
    float x = value;
    return x != x;
}
inline int __hisinf(TCUDA_SMALL_FLOAT value) {
    float x = value;
    return x == __builtin_inff() ? 1 : x == -__builtin_inff() ? -1 : 0;
}
inline TCUDA_SMALL_FLOAT_PAIR __hisnan2(TCUDA_SMALL_FLOAT_PAIR value) {
    return {__hisnan(value.x) ? 1.0f : 0.0f, __hisnan(value.y) ? 1.0f : 0.0f};
}

#define TCUDA_OPERATORS(type, add, subtract, multiply, divide, negate) \
    inline type operator+(const type &a, const type &b) { \
        return add(a, b); \
    } \
    inline type operator-(const type &a, const type &b) { \
        return subtract(a, b); \
    } \
    inline type operator*(const type &a, const type &b) { \
        return multiply(a, b); \
    } \
    inline type operator/(const type &a, const type &b) { \
        return divide(a, b); \
    } \
    inline type &operator+=(type &a, const type &b) { \
        return a = add(a, b); \
    } \
    inline type &operator-=(type &a, const type &b) { \
        return a = subtract(a, b); \
    } \
    inline type &operator*=(type &a, const type &b) { \
        return a = multiply(a, b); \
    } \
    inline type &operator/=(type &a, const type &b) { \
        return a = divide(a, b); \
    } \
    inline type operator+(const type &a) { \
        return a; \
    } \
    inline type operator-(const type &a) { \
        return negate(a); \
    } \
    inline type &operator++(type &a) { \
        return a = add(a, ::tcuda::ones(a)); \
    } \
    inline type &operator--(type &a) { \
        return a = subtract(a, ::tcuda::ones(a)); \
    } \
    inline type operator++(type &a, int) { \
        type previous = a; \
        ++a; \
        return previous; \
    } \
    inline type operator--(type &a, int) { \
        type previous = a; \
        --a; \
        return previous; \
    }
namespace tcuda {

inline TCUDA_SMALL_FLOAT ones(TCUDA_SMALL_FLOAT) {
    return 1.0f;
}
inline TCUDA_SMALL_FLOAT_PAIR ones(TCUDA_SMALL_FLOAT_PAIR) {
    return {1.0f, 1.0f};
}

}  // namespace tcuda
TCUDA_OPERATORS(TCUDA_SMALL_FLOAT, __hadd, __hsub, __hmul, __hdiv, __hneg)
TCUDA_OPERATORS(TCUDA_SMALL_FLOAT_PAIR, __hadd2, __hsub2, __hmul2, __h2div, __hneg2)
#undef TCUDA_OPERATORS

#define TCUDA_COMPARISON(operation, name, pair_name) \
    inline bool operator operation(const TCUDA_SMALL_FLOAT &a, const TCUDA_SMALL_FLOAT &b) { \
        return name(a, b); \
    } \
    inline bool operator operation(const TCUDA_SMALL_FLOAT_PAIR &a, const TCUDA_SMALL_FLOAT_PAIR &b) { \
        return pair_name(a, b); \
    }
TCUDA_COMPARISON(==, __heq, __hbeq2)
TCUDA_COMPARISON(!=, __hneu, __hbneu2)
TCUDA_COMPARISON(<, __hlt, __hblt2)
TCUDA_COMPARISON(<=, __hle, __hble2)
TCUDA_COMPARISON(>, __hgt, __hbgt2)
TCUDA_COMPARISON(>=, __hge, __hbge2)
#undef TCUDA_COMPARISON

TCUDA_AT_CALLER inline TCUDA_SMALL_FLOAT atomicAdd(TCUDA_SMALL_FLOAT *address, TCUDA_SMALL_FLOAT value) {
    return ::tcuda::atomically(address, ::tcuda::abi::Scope::device, [=](TCUDA_SMALL_FLOAT old) { return old + value; });
}
TCUDA_AT_CALLER inline TCUDA_SMALL_FLOAT_PAIR atomicAdd(TCUDA_SMALL_FLOAT_PAIR *address, TCUDA_SMALL_FLOAT_PAIR value) {
    return ::tcuda::atomically(address, ::tcuda::abi::Scope::device, [=](TCUDA_SMALL_FLOAT_PAIR old) { return old + value; });
}

TCUDA_SHUFFLES(TCUDA_SMALL_FLOAT)
TCUDA_SHUFFLES(TCUDA_SMALL_FLOAT_PAIR)
