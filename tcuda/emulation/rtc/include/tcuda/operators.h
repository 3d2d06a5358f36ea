// The shifts and casts of a GPU. The processor of the machine gives other results for a shift by the width or more, and
// for a number that the type of an integer does not have. The run-time compiler puts these names beside the operators
// of a source: `a << b` becomes `a << ::tcuda::left << b`, which has the same precedence.
#pragma once

namespace tcuda {

template <bool condition, class T = void>
struct When {};
template <class T>
struct When<true, T> {
    typedef T type;
};

template <bool condition, class Yes, class No>
struct Choice {
    typedef Yes type;
};
template <class Yes, class No>
struct Choice<false, Yes, No> {
    typedef No type;
};

template <class T, class U>
struct Same {
    static constexpr bool value = false;
};
template <class T>
struct Same<T, T> {
    static constexpr bool value = true;
};

template <class T>
struct Class {
    static constexpr bool value = __is_class(T) || __is_union(T);
};
template <class T>
struct Class<T &> : Class<T> {};

// For a type of integers: the type without a sign of the same size.
template <class T>
struct Integer {
    static constexpr bool value = false;
};
#define TCUDA_INTEGERS(name, other) \
    template <> \
    struct Integer<name> { \
        static constexpr bool value = true; \
        typedef other Unsigned; \
    };
TCUDA_INTEGERS(char, unsigned char)
TCUDA_INTEGERS(signed char, unsigned char)
TCUDA_INTEGERS(unsigned char, unsigned char)
TCUDA_INTEGERS(short, unsigned short)
TCUDA_INTEGERS(unsigned short, unsigned short)
TCUDA_INTEGERS(int, unsigned int)
TCUDA_INTEGERS(unsigned int, unsigned int)
TCUDA_INTEGERS(long, unsigned long)
TCUDA_INTEGERS(unsigned long, unsigned long)
TCUDA_INTEGERS(long long, unsigned long long)
TCUDA_INTEGERS(unsigned long long, unsigned long long)
#undef TCUDA_INTEGERS

// Shifts. A GPU takes the count as 32 bits without a sign.

struct Left {};
struct Right {};
constexpr Left left{};
constexpr Right right{};

template <class T, class Direction>
struct Shifted {
    T value;
};

template <class T>
constexpr T shifted(T value, unsigned count, Left) {
    return count < 8 * sizeof(T) ? static_cast<T>(static_cast<typename Integer<T>::Unsigned>(value) << count) : T(0);
}
template <class T>
constexpr T shifted(T value, unsigned count, Right) {
    return count < 8 * sizeof(T) ? static_cast<T>(value >> count) : value < 0 ? T(-1) : T(0);
}

// Operands with operators of their own: classes, and enumerations with such an operator.
#define TCUDA_SHIFT(operation, Direction) \
    template <class L, class R, class T = decltype(+L()), \
              class = typename When<Integer<T>::value && Integer<decltype(+R())>::value>::type> \
    constexpr auto shift(L value, R count, Direction direction, int) \
        -> typename When<Same<decltype(value operation count), T>::value, T>::type { \
        return shifted<T>(value, static_cast<unsigned>(count), direction); \
    } \
    template <class L, class R> \
    constexpr auto shift(L &&value, R &&count, Direction, ...) \
        -> decltype(static_cast<L &&>(value) operation static_cast<R &&>(count)) { \
        return static_cast<L &&>(value) operation static_cast<R &&>(count); \
    } \
    template <class L> \
    constexpr typename When<!Class<L>::value, Shifted<L, Direction>>::type operator operation(L value, Direction) { \
        return {value}; \
    } \
    template <class L> \
    constexpr typename When<Class<L>::value, Shifted<L &&, Direction>>::type operator operation( \
        L &&value, Direction) { \
        return {static_cast<L &&>(value)}; \
    } \
    template <class L, class R, class = typename When<!Class<R>::value>::type> \
    constexpr auto operator operation(Shifted<L, Direction> operand, R count) \
        -> decltype(shift(static_cast<L>(operand.value), count, Direction(), 0)) { \
        return shift(static_cast<L>(operand.value), count, Direction(), 0); \
    } \
    template <class L, class R, class = typename When<Class<R>::value>::type> \
    constexpr auto operator operation(Shifted<L, Direction> operand, R &&count) \
        -> decltype(static_cast<L>(operand.value) operation static_cast<R &&>(count)) { \
        return static_cast<L>(operand.value) operation static_cast<R &&>(count); \
    }
TCUDA_SHIFT(<<, Left)
TCUDA_SHIFT(>>, Right)
#undef TCUDA_SHIFT

// `a <<= b` becomes `a <<= ::tcuda::count = b`.

template <class T>
struct Count {
    T value;
};
struct CountOf {
    template <class T>
    constexpr Count<T> operator=(T value) const {
        return {value};
    }
};
constexpr CountOf count{};

#define TCUDA_SHIFT_ASSIGNMENT(operation, plain, direction) \
    template <class L, class R> \
    inline typename When<!Class<L>::value, L &>::type operator operation(L &target, Count<R> by) { \
        return target = static_cast<L>(target plain direction plain by.value); \
    } \
    template <class L, class R> \
    inline void operator operation(volatile L &target, Count<R> by) { \
        target = static_cast<L>(target plain direction plain by.value); \
    } \
    template <class L, class R, class = typename When<Class<L>::value>::type> \
    inline auto operator operation(L &&target, Count<R> by) -> decltype(static_cast<L &&>(target) operation by.value) { \
        return static_cast<L &&>(target) operation by.value; \
    }
TCUDA_SHIFT_ASSIGNMENT(<<=, <<, ::tcuda::left)
TCUDA_SHIFT_ASSIGNMENT(>>=, >>, ::tcuda::right)
#undef TCUDA_SHIFT_ASSIGNMENT

// Casts. A GPU converts to 32 or 64 bits, where the nearest integer takes the place of a number that is missing, and
// then keeps the lowest bits. NaN gives the highest bit, but 0 from single precision to 32 bits.

template <class To, class From>
struct Range {
    static constexpr bool is_signed = static_cast<To>(-1) < static_cast<To>(0);
    static constexpr unsigned long long highest_bit = 1ull << (8 * sizeof(To) - 1);
    static constexpr To lowest = is_signed ? static_cast<To>(highest_bit) : 0;
    static constexpr To highest = static_cast<To>(~static_cast<unsigned long long>(lowest));
    static constexpr From limit = (is_signed ? 1 : 2) * static_cast<From>(highest_bit);
    static constexpr To unknown = sizeof(To) == 8 || (sizeof(To) == 4 && sizeof(From) == 8) ? static_cast<To>(highest_bit) : 0;
};

// The nearest integer of a type takes the place of a number that is missing in the type.
template <class To, class From>
constexpr To clamped(From value) {
    return value != value                                      ? Range<To, From>::unknown
           : value >= Range<To, From>::limit                   ? Range<To, From>::highest
           : value <= static_cast<From>(Range<To, From>::lowest) ? Range<To, From>::lowest
                                                               : static_cast<To>(value);
}

template <class To, class From>
constexpr To cut(From value) {
    return static_cast<To>(
        clamped<typename Choice<(sizeof(To) >= 4), To, typename Choice<Range<To, From>::is_signed, int, unsigned>::type>::type>(
            value));
}

template <class From>
struct Conversion {
    template <class To>
    static constexpr To to(From value) {
        return (To)value;
    }
};
template <>
struct Conversion<float> {
    template <class To>
    static constexpr To to(float value) {
        return cut<To>(value);
    }
};
template <>
struct Conversion<double> {
    template <class To>
    static constexpr To to(double value) {
        return cut<To>(value);
    }
};

// Implicit conversions: an expression `x` that becomes an integer is `::tcuda::implicit(x)`. In templates,
// `a = x` becomes `a = ::tcuda::converted = x`. Expressions of other types stay what they are.

template <class From>
struct Implicit {
    From value;

    template <class T, class = typename When<Integer<T>::value>::type>
    constexpr operator T() const {
        return Conversion<From>::template to<T>(value);
    }
    constexpr operator From() const {
        return value;
    }
};
template <class T>
struct Floating : Class<T> {};
template <>
struct Floating<float> {
    static constexpr bool value = true;
};
template <>
struct Floating<double> {
    static constexpr bool value = true;
};

template <class T>
constexpr typename Choice<Floating<T>::value, Implicit<T>, T>::type implicit(T value) {
    return {value};
}

struct ConvertedOf {
    template <class T>
    constexpr auto operator=(T value) const -> decltype(implicit(value)) {
        return implicit(value);
    }
};
constexpr ConvertedOf converted{};

// `a += x` becomes `a += ::tcuda::operand = x`, if `a` is an integer and `x` is not.

template <class T>
struct Operand {
    T value;
};
struct OperandOf {
    template <class T>
    constexpr Operand<T> operator=(T value) const {
        return {value};
    }
};
constexpr OperandOf operand{};

#define TCUDA_ASSIGNMENT(operation, plain) \
    template <class L, class R> \
    inline typename When<Integer<L>::value, L &>::type operator operation(L &target, Operand<R> by) { \
        return target = implicit(target plain by.value); \
    } \
    template <class L, class R> \
    inline typename When<!Integer<L>::value, L &>::type operator operation(L &target, Operand<R> by) { \
        return target operation by.value; \
    }
TCUDA_ASSIGNMENT(+=, +)
TCUDA_ASSIGNMENT(-=, -)
TCUDA_ASSIGNMENT(*=, *)
TCUDA_ASSIGNMENT(/=, /)
#undef TCUDA_ASSIGNMENT

template <class T>
struct Converted {
    T value;

    template <class From>
    explicit constexpr Converted(From from) : value(Conversion<From>::template to<T>(from)) {}
    constexpr operator T() const {
        return value;
    }
};

// `(int)x` becomes `(int)(::tcuda::Cast<int>)x`. A cast to another type than an integer stays the same.
template <class T>
using Cast = typename Choice<Integer<T>::value, Converted<T>, T>::type;

}  // namespace tcuda
