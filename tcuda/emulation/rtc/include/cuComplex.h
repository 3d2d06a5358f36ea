// The complex types of the C interface of CUDA.
#pragma once

#include "tcuda/device.h"

using cuFloatComplex = float2;
using cuDoubleComplex = double2;
using cuComplex = cuFloatComplex;

#define TCUDA_COMPLEX(type, number, make, re, im, conjugate, add, subtract, multiply, divide, magnitude, fused) \
    inline type make(number x, number y) { \
        return {x, y}; \
    } \
    inline number re(type z) { \
        return z.x; \
    } \
    inline number im(type z) { \
        return z.y; \
    } \
    inline type conjugate(type z) { \
        return {z.x, -z.y}; \
    } \
    inline type add(type a, type b) { \
        return {a.x + b.x, a.y + b.y}; \
    } \
    inline type subtract(type a, type b) { \
        return {a.x - b.x, a.y - b.y}; \
    } \
    inline type multiply(type a, type b) { \
        return {a.x * b.x - a.y * b.y, a.x * b.y + a.y * b.x}; \
    } \
    inline type divide(type a, type b) { \
        number scale = 1 / (abs(b.x) + abs(b.y)); \
        number a_re = a.x * scale, a_im = a.y * scale, b_re = b.x * scale, b_im = b.y * scale; \
        number inverse = 1 / (b_re * b_re + b_im * b_im); \
        return {(a_re * b_re + a_im * b_im) * inverse, (a_im * b_re - a_re * b_im) * inverse}; \
    } \
    inline number magnitude(type z) { \
        return hypot(z.x, z.y); \
    } \
    inline type fused(type a, type b, type c) { \
        return add(multiply(a, b), c); \
    }
TCUDA_COMPLEX(cuFloatComplex, float, make_cuFloatComplex, cuCrealf, cuCimagf, cuConjf, cuCaddf, cuCsubf, cuCmulf, cuCdivf,
              cuCabsf, cuCfmaf)
TCUDA_COMPLEX(cuDoubleComplex, double, make_cuDoubleComplex, cuCreal, cuCimag, cuConj, cuCadd, cuCsub, cuCmul, cuCdiv,
              cuCabs, cuCfma)
#undef TCUDA_COMPLEX
inline cuComplex make_cuComplex(float x, float y) {
    return {x, y};
}
inline cuFloatComplex cuComplexDoubleToFloat(cuDoubleComplex z) {
    return {static_cast<float>(z.x), static_cast<float>(z.y)};
}
inline cuDoubleComplex cuComplexFloatToDouble(cuFloatComplex z) {
    return {z.x, z.y};
}
