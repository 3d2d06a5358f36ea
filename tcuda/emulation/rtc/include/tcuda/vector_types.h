// The vector types of CUDA C++ with the alignment that CUDA gives them.
#pragma once

#include "tcuda/qualifiers.h"

#define TCUDA_VECTOR_TYPES(name, element, pair_alignment, quad_alignment) \
    struct name##1 { \
        element x; \
    }; \
    struct __align__(pair_alignment) name##2 { \
        element x, y; \
    }; \
    struct name##3 { \
        element x, y, z; \
    }; \
    struct __align__(quad_alignment) name##4 { \
        element x, y, z, w; \
    }; \
    inline name##1 make_##name##1(element x) { \
        return {x}; \
    } \
    inline name##2 make_##name##2(element x, element y) { \
        return {x, y}; \
    } \
    inline name##3 make_##name##3(element x, element y, element z) { \
        return {x, y, z}; \
    } \
    inline name##4 make_##name##4(element x, element y, element z, element w) { \
        return {x, y, z, w}; \
    }

TCUDA_VECTOR_TYPES(char, signed char, 2, 4)
TCUDA_VECTOR_TYPES(uchar, unsigned char, 2, 4)
TCUDA_VECTOR_TYPES(short, short, 4, 8)
TCUDA_VECTOR_TYPES(ushort, unsigned short, 4, 8)
TCUDA_VECTOR_TYPES(int, int, 8, 16)
TCUDA_VECTOR_TYPES(uint, unsigned int, 8, 16)
TCUDA_VECTOR_TYPES(long, long, 16, 16)
TCUDA_VECTOR_TYPES(ulong, unsigned long, 16, 16)
TCUDA_VECTOR_TYPES(longlong, long long, 16, 16)
TCUDA_VECTOR_TYPES(ulonglong, unsigned long long, 16, 16)
TCUDA_VECTOR_TYPES(float, float, 8, 16)
TCUDA_VECTOR_TYPES(double, double, 16, 16)

#undef TCUDA_VECTOR_TYPES

struct dim3 {
    unsigned int x, y, z;

    constexpr dim3(unsigned int x = 1, unsigned int y = 1, unsigned int z = 1) : x(x), y(y), z(z) {}
    constexpr dim3(uint3 value) : x(value.x), y(value.y), z(value.z) {}
    constexpr operator uint3() const {
        return {x, y, z};
    }
};
