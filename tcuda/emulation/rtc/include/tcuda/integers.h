// The intrinsic functions of integers.
#pragma once

#include "tcuda/qualifiers.h"
#include "tcuda/vector_types.h"

inline int __clz(int value) {
    return value == 0 ? 32 : __builtin_clz(static_cast<unsigned>(value));
}
inline int __clzll(long long value) {
    return value == 0 ? 64 : __builtin_clzll(static_cast<unsigned long long>(value));
}
inline int __ffs(int value) {
    return __builtin_ffs(value);
}
inline int __ffsll(long long value) {
    return __builtin_ffsll(value);
}
inline int __popc(unsigned int value) {
    return __builtin_popcount(value);
}
inline int __popcll(unsigned long long value) {
    return __builtin_popcountll(value);
}
inline unsigned int __brev(unsigned int value) {
    value = (value >> 1 & 0x55555555u) | (value & 0x55555555u) << 1;
    value = (value >> 2 & 0x33333333u) | (value & 0x33333333u) << 2;
    value = (value >> 4 & 0x0f0f0f0fu) | (value & 0x0f0f0f0fu) << 4;
    return __builtin_bswap32(value);
}
inline unsigned long long __brevll(unsigned long long value) {
    return static_cast<unsigned long long>(__brev(static_cast<unsigned>(value))) << 32 |
           __brev(static_cast<unsigned>(value >> 32));
}
inline unsigned int __byte_perm(unsigned int low, unsigned int high, unsigned int selector) {
    unsigned long long bytes = static_cast<unsigned long long>(high) << 32 | low;
    unsigned int result = 0;
    for (int i = 0; i < 4; ++i) {
        // CUDA ignores the fourth bit of a selector, unlike the instruction prmt of PTX.
        unsigned int choice = selector >> 4 * i & 7;
        unsigned int byte = bytes >> 8 * choice & 0xff;
        result |= byte << 8 * i;
    }
    return result;
}
inline int __mul24(int a, int b) {
    int left = static_cast<int>(static_cast<unsigned>(a) << 8) >> 8, right = static_cast<int>(static_cast<unsigned>(b) << 8) >> 8;
    return static_cast<int>(static_cast<long long>(left) * right);
}
inline unsigned int __umul24(unsigned int a, unsigned int b) {
    return (a & 0xffffff) * (b & 0xffffff);
}
inline int __mulhi(int a, int b) {
    return static_cast<int>(static_cast<long long>(a) * b >> 32);
}
inline unsigned int __umulhi(unsigned int a, unsigned int b) {
    return static_cast<unsigned>(static_cast<unsigned long long>(a) * b >> 32);
}
inline long long __mul64hi(long long a, long long b) {
    return static_cast<long long>(static_cast<__int128>(a) * b >> 64);
}
inline unsigned long long __umul64hi(unsigned long long a, unsigned long long b) {
    return static_cast<unsigned long long>(static_cast<unsigned __int128>(a) * b >> 64);
}
inline unsigned int __usad(unsigned int a, unsigned int b, unsigned int sum) {
    return (a > b ? a - b : b - a) + sum;
}
inline unsigned int __sad(int a, int b, unsigned int sum) {
    unsigned int left = static_cast<unsigned>(a), right = static_cast<unsigned>(b);
    return (a > b ? left - right : right - left) + sum;
}
inline int __hadd(int a, int b) {
    return static_cast<int>((static_cast<long long>(a) + b) >> 1);
}
inline int __rhadd(int a, int b) {
    return static_cast<int>((static_cast<long long>(a) + b + 1) >> 1);
}
inline unsigned int __uhadd(unsigned int a, unsigned int b) {
    return static_cast<unsigned>((static_cast<unsigned long long>(a) + b) >> 1);
}
inline unsigned int __urhadd(unsigned int a, unsigned int b) {
    return static_cast<unsigned>((static_cast<unsigned long long>(a) + b + 1) >> 1);
}
inline unsigned int __funnelshift_l(unsigned int low, unsigned int high, unsigned int shift) {
    return static_cast<unsigned>((static_cast<unsigned long long>(high) << 32 | low) << (shift & 31) >> 32);
}
inline unsigned int __funnelshift_r(unsigned int low, unsigned int high, unsigned int shift) {
    return static_cast<unsigned>((static_cast<unsigned long long>(high) << 32 | low) >> (shift & 31));
}
inline unsigned int __funnelshift_lc(unsigned int low, unsigned int high, unsigned int shift) {
    return shift >= 32 ? low : __funnelshift_l(low, high, shift);
}
inline unsigned int __funnelshift_rc(unsigned int low, unsigned int high, unsigned int shift) {
    return shift >= 32 ? high : __funnelshift_r(low, high, shift);
}
inline unsigned int __fns(unsigned int mask, unsigned int base, int offset) {
    int step = offset < 0 ? -1 : 1, remaining = offset == 0 ? 1 : offset * step;
    for (int bit = static_cast<int>(base); bit >= 0 && bit < 32; bit += step) {
        if (mask >> bit & 1 && --remaining == 0) return static_cast<unsigned>(bit);
        if (offset == 0) break;
    }
    return 0xffffffffu;
}

inline int __dp4a(int a, int b, int sum) {
    for (int i = 0; i < 32; i += 8) sum += static_cast<signed char>(a >> i) * static_cast<signed char>(b >> i);
    return sum;
}
inline unsigned int __dp4a(unsigned int a, unsigned int b, unsigned int sum) {
    for (int i = 0; i < 32; i += 8) sum += (a >> i & 0xff) * (b >> i & 0xff);
    return sum;
}
inline int __dp4a(char4 a, char4 b, int sum) {
    return sum + a.x * b.x + a.y * b.y + a.z * b.z + a.w * b.w;
}
inline unsigned int __dp4a(uchar4 a, uchar4 b, unsigned int sum) {
    return sum + static_cast<unsigned>(a.x * b.x + a.y * b.y + a.z * b.z + a.w * b.w);
}
inline int __dp2a_lo(int a, int b, int sum) {
    return sum + static_cast<short>(a) * static_cast<signed char>(b) + static_cast<short>(a >> 16) * static_cast<signed char>(b >> 8);
}
inline int __dp2a_hi(int a, int b, int sum) {
    return __dp2a_lo(a, b >> 16, sum);
}
inline unsigned int __dp2a_lo(unsigned int a, unsigned int b, unsigned int sum) {
    return sum + (a & 0xffff) * (b & 0xff) + (a >> 16) * (b >> 8 & 0xff);
}
inline unsigned int __dp2a_hi(unsigned int a, unsigned int b, unsigned int sum) {
    return __dp2a_lo(a, b >> 16, sum);
}
