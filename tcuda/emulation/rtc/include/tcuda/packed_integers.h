// The intrinsic functions that treat a word as two or four small integers.
#pragma once

#include "tcuda/qualifiers.h"

namespace tcuda {

// Applies an operation to the parts of two words. `Part`, the type of a part, gives the width and the sign.
template <class Part, class Operation>
inline unsigned int for_each_part(unsigned int a, unsigned int b, Operation operation) {
    constexpr unsigned int bits = 8 * sizeof(Part), mask = (1u << bits) - 1;
    unsigned int result = 0;
    for (unsigned int shift = 0; shift < 32; shift += bits) {
        int left = static_cast<Part>(a >> shift), right = static_cast<Part>(b >> shift);
        result |= (static_cast<unsigned int>(operation(left, right)) & mask) << shift;
    }
    return result;
}

template <class Part, class Operation>
inline unsigned int sum_of_parts(unsigned int a, unsigned int b, Operation operation) {
    unsigned int result = 0;
    for (unsigned int shift = 0; shift < 32; shift += 8 * sizeof(Part)) {
        result += static_cast<unsigned int>(operation(static_cast<Part>(a >> shift), static_cast<Part>(b >> shift)));
    }
    return result;
}

// The value of the type `Part` that is nearest to a value.
template <class Part>
inline int saturated(int value) {
    constexpr bool is_signed = static_cast<Part>(-1) < static_cast<Part>(0);
    constexpr int highest = is_signed ? (1 << (8 * sizeof(Part) - 1)) - 1 : (1 << 8 * sizeof(Part)) - 1;
    constexpr int lowest = is_signed ? -highest - 1 : 0;
    return value < lowest ? lowest : value > highest ? highest : value;
}

}  // namespace tcuda

#define TCUDA_PARTS_ONE(name, part, expression) \
    inline unsigned int name(unsigned int word) { \
        using Part = part; \
        return ::tcuda::for_each_part<Part>(word, 0, [](int a, int) -> int { return expression; }); \
    }
#define TCUDA_PARTS_TWO(name, part, expression) \
    inline unsigned int name(unsigned int first, unsigned int second) { \
        using Part = part; \
        return ::tcuda::for_each_part<Part>(first, second, [](int a, int b) -> int { return expression; }); \
    }
#define TCUDA_PARTS_SUM(name, part, expression) \
    inline unsigned int name(unsigned int first, unsigned int second) { \
        using Part = part; \
        return ::tcuda::sum_of_parts<Part>(first, second, [](int a, int b) -> int { return expression; }); \
    }
#define TCUDA_PARTS(count, signed_part, unsigned_part) \
    TCUDA_PARTS_ONE(__vabs##count, signed_part, a < 0 ? -a : a) \
    TCUDA_PARTS_ONE(__vabsss##count, signed_part, ::tcuda::saturated<Part>(a < 0 ? -a : a)) \
    TCUDA_PARTS_ONE(__vneg##count, signed_part, -a) \
    TCUDA_PARTS_ONE(__vnegss##count, signed_part, ::tcuda::saturated<Part>(-a)) \
    TCUDA_PARTS_TWO(__vadd##count, unsigned_part, a + b) \
    TCUDA_PARTS_TWO(__vaddss##count, signed_part, ::tcuda::saturated<Part>(a + b)) \
    TCUDA_PARTS_TWO(__vaddus##count, unsigned_part, ::tcuda::saturated<Part>(a + b)) \
    TCUDA_PARTS_TWO(__vsub##count, unsigned_part, a - b) \
    TCUDA_PARTS_TWO(__vsubss##count, signed_part, ::tcuda::saturated<Part>(a - b)) \
    TCUDA_PARTS_TWO(__vsubus##count, unsigned_part, ::tcuda::saturated<Part>(a - b)) \
    TCUDA_PARTS_TWO(__vavgs##count, signed_part, (a + b + (a + b >= 0)) >> 1) \
    TCUDA_PARTS_TWO(__vavgu##count, unsigned_part, (a + b + 1) >> 1) \
    TCUDA_PARTS_TWO(__vhaddu##count, unsigned_part, (a + b) >> 1) \
    TCUDA_PARTS_TWO(__vabsdiffs##count, signed_part, a < b ? b - a : a - b) \
    TCUDA_PARTS_TWO(__vabsdiffu##count, unsigned_part, a < b ? b - a : a - b) \
    TCUDA_PARTS_TWO(__vmaxs##count, signed_part, a < b ? b : a) \
    TCUDA_PARTS_TWO(__vmaxu##count, unsigned_part, a < b ? b : a) \
    TCUDA_PARTS_TWO(__vmins##count, signed_part, b < a ? b : a) \
    TCUDA_PARTS_TWO(__vminu##count, unsigned_part, b < a ? b : a) \
    TCUDA_PARTS_SUM(__vsads##count, signed_part, a < b ? b - a : a - b) \
    TCUDA_PARTS_SUM(__vsadu##count, unsigned_part, a < b ? b - a : a - b) \
    TCUDA_PARTS_COMPARE(eq##count, unsigned_part, ==) \
    TCUDA_PARTS_COMPARE(ne##count, unsigned_part, !=) \
    TCUDA_PARTS_COMPARE(ges##count, signed_part, >=) \
    TCUDA_PARTS_COMPARE(geu##count, unsigned_part, >=) \
    TCUDA_PARTS_COMPARE(gts##count, signed_part, >) \
    TCUDA_PARTS_COMPARE(gtu##count, unsigned_part, >) \
    TCUDA_PARTS_COMPARE(les##count, signed_part, <=) \
    TCUDA_PARTS_COMPARE(leu##count, unsigned_part, <=) \
    TCUDA_PARTS_COMPARE(lts##count, signed_part, <) \
    TCUDA_PARTS_COMPARE(ltu##count, unsigned_part, <)
#define TCUDA_PARTS_COMPARE(name, part, operation) \
    TCUDA_PARTS_TWO(__vcmp##name, part, a operation b ? -1 : 0) \
    TCUDA_PARTS_TWO(__vset##name, part, a operation b)
TCUDA_PARTS(2, short, unsigned short)
TCUDA_PARTS(4, signed char, unsigned char)
#undef TCUDA_PARTS_COMPARE
#undef TCUDA_PARTS
#undef TCUDA_PARTS_SUM
#undef TCUDA_PARTS_TWO
#undef TCUDA_PARTS_ONE
