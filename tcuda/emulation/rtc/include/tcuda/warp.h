// The functions of a warp: shuffles, votes, matches, reductions.
#pragma once

#include "tcuda/launch.h"

namespace tcuda {

template <class T>
inline unsigned long long packed(T value) {
    static_assert(sizeof(T) <= 8, "a lane gives at most eight bytes");
    unsigned long long bits = 0;
    __builtin_memcpy(&bits, &value, sizeof(T));
    return bits;
}

template <class T>
inline T unpacked(unsigned long long bits) {
    T value;
    __builtin_memcpy(static_cast<void *>(&value), &bits, sizeof(T));
    return value;
}

// The value of the lane `source`. If this lane does not take part, the result is the value of the caller.
template <class T>
inline T value_of_lane(unsigned int mask, T value, int source) {
    unsigned int present = 0;
    const unsigned long long *values = exchange(mask, packed(value), &present);
    return present >> source & 1 ? unpacked<T>(values[source]) : value;
}

template <class T>
inline T shuffle(unsigned int mask, T value, int source, int width) {
    int self = static_cast<int>(lane());
    return value_of_lane(mask, value, (self & ~(width - 1)) | (source & (width - 1)));
}
template <class T>
inline T shuffle_up(unsigned int mask, T value, unsigned int delta, int width) {
    int self = static_cast<int>(lane()), source = self - static_cast<int>(delta & 31);
    return value_of_lane(mask, value, source < (self & ~(width - 1)) ? self : source);
}
template <class T>
inline T shuffle_down(unsigned int mask, T value, unsigned int delta, int width) {
    int self = static_cast<int>(lane()), source = self + static_cast<int>(delta & 31);
    return value_of_lane(mask, value, source > (self | (width - 1)) ? self : source);
}
template <class T>
inline T shuffle_xor(unsigned int mask, T value, int lanes, int width) {
    int self = static_cast<int>(lane()), source = self ^ (lanes & 31);
    return value_of_lane(mask, value, source > (self | (width - 1)) ? self : source);
}

inline unsigned int ballot(unsigned int mask, bool predicate, unsigned int *present) {
    const unsigned long long *values = exchange(mask, predicate, present);
    unsigned int votes = 0;
    for (int i = 0; i < 32; ++i) {
        if (*present >> i & 1 && values[i]) votes |= 1u << i;
    }
    return votes;
}

template <class T>
inline unsigned int matching(unsigned int mask, T value, unsigned int *present) {
    unsigned long long bits = packed(value);
    const unsigned long long *values = exchange(mask, bits, present);
    unsigned int matches = 0;
    for (int i = 0; i < 32; ++i) {
        if (*present >> i & 1 && values[i] == bits) matches |= 1u << i;
    }
    return matches;
}

template <class T, class Operation>
inline T reduced(unsigned int mask, T value, Operation operation) {
    unsigned int present = 0;
    const unsigned long long *values = exchange(mask, packed(value), &present);
    bool found = false;
    T result = value;
    for (int i = 0; i < 32; ++i) {
        if (!(present >> i & 1)) continue;
        T other = unpacked<T>(values[i]);
        result = found ? operation(result, other) : other;
        found = true;
    }
    return result;
}

}  // namespace tcuda

// The headers of the short floating types use this macro too.
#define TCUDA_SHUFFLES(type) \
    inline type __shfl_sync(unsigned int mask, type value, int source, int width = 32) { \
        return ::tcuda::shuffle(mask, value, source, width); \
    } \
    inline type __shfl_up_sync(unsigned int mask, type value, unsigned int delta, int width = 32) { \
        return ::tcuda::shuffle_up(mask, value, delta, width); \
    } \
    inline type __shfl_down_sync(unsigned int mask, type value, unsigned int delta, int width = 32) { \
        return ::tcuda::shuffle_down(mask, value, delta, width); \
    } \
    inline type __shfl_xor_sync(unsigned int mask, type value, int lanes, int width = 32) { \
        return ::tcuda::shuffle_xor(mask, value, lanes, width); \
    }
#define TCUDA_MATCHES(type) \
    inline unsigned int __match_any_sync(unsigned int mask, type value) { \
        unsigned int present = 0; \
        return ::tcuda::matching(mask, value, &present); \
    } \
    inline unsigned int __match_all_sync(unsigned int mask, type value, int *all) { \
        unsigned int present = 0; \
        bool equal = ::tcuda::matching(mask, value, &present) == present; \
        *all = equal; \
        return equal ? present : 0; \
    }
TCUDA_SHUFFLES(int)
TCUDA_MATCHES(int)
TCUDA_SHUFFLES(unsigned int)
TCUDA_MATCHES(unsigned int)
TCUDA_SHUFFLES(long)
TCUDA_MATCHES(long)
TCUDA_SHUFFLES(unsigned long)
TCUDA_MATCHES(unsigned long)
TCUDA_SHUFFLES(long long)
TCUDA_MATCHES(long long)
TCUDA_SHUFFLES(unsigned long long)
TCUDA_MATCHES(unsigned long long)
TCUDA_SHUFFLES(float)
TCUDA_MATCHES(float)
TCUDA_SHUFFLES(double)
TCUDA_MATCHES(double)
#undef TCUDA_MATCHES

// The core tells by the place of a call which lanes meet there, so the function must be a part of its caller.
__forceinline__ unsigned int __activemask() {
    return ::tcuda::live_lanes();
}
inline unsigned int __ballot_sync(unsigned int mask, int predicate) {
    unsigned int present = 0;
    return ::tcuda::ballot(mask, predicate != 0, &present);
}
inline int __all_sync(unsigned int mask, int predicate) {
    unsigned int present = 0;
    return ::tcuda::ballot(mask, predicate != 0, &present) == present;
}
inline int __any_sync(unsigned int mask, int predicate) {
    unsigned int present = 0;
    return ::tcuda::ballot(mask, predicate != 0, &present) != 0;
}
inline int __uni_sync(unsigned int mask, int predicate) {
    unsigned int present = 0;
    unsigned int votes = ::tcuda::ballot(mask, predicate != 0, &present);
    return votes == 0 || votes == present;
}

#define TCUDA_WARP_REDUCTION(name, type, expression) \
    inline type name(unsigned int mask, type value) { \
        return ::tcuda::reduced(mask, value, [](type a, type b) -> type { return expression; }); \
    }
TCUDA_WARP_REDUCTION(__reduce_add_sync, int, a + b)
TCUDA_WARP_REDUCTION(__reduce_min_sync, int, b < a ? b : a)
TCUDA_WARP_REDUCTION(__reduce_max_sync, int, a < b ? b : a)
TCUDA_WARP_REDUCTION(__reduce_add_sync, unsigned int, a + b)
TCUDA_WARP_REDUCTION(__reduce_min_sync, unsigned int, b < a ? b : a)
TCUDA_WARP_REDUCTION(__reduce_max_sync, unsigned int, a < b ? b : a)
TCUDA_WARP_REDUCTION(__reduce_and_sync, unsigned int, a & b)
TCUDA_WARP_REDUCTION(__reduce_or_sync, unsigned int, a | b)
TCUDA_WARP_REDUCTION(__reduce_xor_sync, unsigned int, a ^ b)
#undef TCUDA_WARP_REDUCTION

#define TCUDA_REMOVED(name, replacement) \
    template <class... Arguments> \
    inline int name(Arguments...) { \
        static_assert(sizeof...(Arguments) > 1000, #name " is not available for compute capability 7.0 and higher; use " #replacement); \
        return 0; \
    }
TCUDA_REMOVED(__shfl, __shfl_sync)
TCUDA_REMOVED(__shfl_up, __shfl_up_sync)
TCUDA_REMOVED(__shfl_down, __shfl_down_sync)
TCUDA_REMOVED(__shfl_xor, __shfl_xor_sync)
TCUDA_REMOVED(__all, __all_sync)
TCUDA_REMOVED(__any, __any_sync)
TCUDA_REMOVED(__ballot, __ballot_sync)
#undef TCUDA_REMOVED
