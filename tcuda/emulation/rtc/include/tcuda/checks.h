// The functions that the compiler calls before each access to memory.
#pragma once

#include "tcuda/races.h"

#ifndef TCUDA_SUPPORT_APART
extern "C" {

#define TCUDA_CHECK(name, type, size, write)                                                                           \
    TCUDA_HIDDEN TCUDA_UNSANITIZED void name(type place) {                                                             \
        tcuda::access<size, write, false>((tcuda::abi::Address)place);                                                 \
    }
// The compiler calls these functions for types with this alignment. A type of 16 bytes may have an alignment of 8 bytes.
#define TCUDA_ALIGNED_CHECK(name, type, size, write)                                                                   \
    TCUDA_HIDDEN TCUDA_UNSANITIZED void name(type place) {                                                             \
        tcuda::access<size, write, true>((tcuda::abi::Address)place);                                                  \
    }
#define TCUDA_RANGE_CHECK(name, type, write)                                                                           \
    TCUDA_HIDDEN TCUDA_UNSANITIZED void name(type place, __SIZE_TYPE__ size) {                                         \
        const auto address = (tcuda::abi::Address)place;                                                               \
        tcuda::check(address, size, write, __builtin_return_address(0));                                               \
        tcuda::touch(address, size, tcuda::touch_of(write), __builtin_return_address(0));                              \
    }
#ifdef __SANITIZE_THREAD__

// -fsanitize=thread is for a launch that records accesses, because with -fsanitize=kernel-address the compiler leaves out
// the check of a write after a read of the same memory. Sources with volatile variables get -fsanitize=thread too.
#define TCUDA_CHECKS_OF(size)                                                                                          \
    TCUDA_ALIGNED_CHECK(__tsan_read##size, void *, size, false)                                                        \
    TCUDA_ALIGNED_CHECK(__tsan_write##size, void *, size, true)                                                        \
    TCUDA_CHECK(__tsan_unaligned_read##size, void *, size, false)                                                      \
    TCUDA_CHECK(__tsan_unaligned_write##size, void *, size, true)
TCUDA_CHECK(__tsan_read1, void *, 1, false)
TCUDA_CHECK(__tsan_write1, void *, 1, true)
TCUDA_CHECKS_OF(2)
TCUDA_CHECKS_OF(4)
TCUDA_CHECKS_OF(8)
TCUDA_CHECKS_OF(16)
#undef TCUDA_CHECKS_OF
// Accesses to volatile variables
#define TCUDA_STEP(name, size, write)                                                                                  \
    TCUDA_HIDDEN TCUDA_UNSANITIZED void __tsan_unaligned_volatile_##name(void *place) {                                \
        const auto address = (tcuda::abi::Address)place;                                                               \
        tcuda::step(write);                                                                                            \
        tcuda::check(address, size, write, __builtin_return_address(0));                                               \
        tcuda::touch(address, size, tcuda::volatile_touch_of(write), __builtin_return_address(0));                     \
    }                                                                                                                  \
    TCUDA_HIDDEN TCUDA_UNSANITIZED void __tsan_volatile_##name(void *place) {                                          \
        const auto address = (tcuda::abi::Address)place;                                                               \
        tcuda::step(write);                                                                                            \
        tcuda::check_alignment(address, size, write, __builtin_return_address(0));                                     \
        tcuda::check(address, size, write, __builtin_return_address(0));                                               \
        tcuda::touch(address, size, tcuda::volatile_touch_of(write), __builtin_return_address(0));                     \
    }
#define TCUDA_STEPS(size)                                                                                              \
    TCUDA_STEP(read##size, size, false)                                                                                \
    TCUDA_STEP(write##size, size, true)
TCUDA_STEPS(1)
TCUDA_STEPS(2)
TCUDA_STEPS(4)
TCUDA_STEPS(8)
TCUDA_STEPS(16)
#undef TCUDA_STEPS
#undef TCUDA_STEP
TCUDA_RANGE_CHECK(__tsan_read_range, void *, false)
TCUDA_RANGE_CHECK(__tsan_write_range, void *, true)
TCUDA_HIDDEN TCUDA_UNSANITIZED void __tsan_vptr_update(void **address, void *) {
    tcuda::check((tcuda::abi::Address)address, sizeof(void *), true, __builtin_return_address(0));
    tcuda::touch((tcuda::abi::Address)address, sizeof(void *), tcuda::abi::Touch::write, __builtin_return_address(0));
}
TCUDA_HIDDEN TCUDA_UNSANITIZED void __tsan_vptr_read(void **address) {
    tcuda::check((tcuda::abi::Address)address, sizeof(void *), false, __builtin_return_address(0));
    tcuda::touch((tcuda::abi::Address)address, sizeof(void *), tcuda::abi::Touch::read, __builtin_return_address(0));
}
TCUDA_HIDDEN void __tsan_init() {}
TCUDA_HIDDEN void __tsan_func_entry(void *) {}
TCUDA_HIDDEN void __tsan_func_exit() {}

// Few kernels call these functions, and every kernel contains them. The compiler takes a third less time for a kernel
// if it does not optimize them.
#pragma GCC push_options
#pragma GCC optimize("O0")
// Nothing interrupts a thread between a load and a store, so plain accesses are atomic.
// The orders 2 (acquire), 3 (release) and above are fences too.
#define TCUDA_BEFORE(order)                                                                                            \
    if (order >= 3)                                                                                                    \
        tcuda::fence(tcuda::abi::Scope::device);
#define TCUDA_AFTER(order)                                                                                             \
    if (order >= 1 && order != 3)                                                                                      \
        tcuda::fence(tcuda::abi::Scope::device);
#define TCUDA_CHECK_UPDATE(bits)                                                                                       \
    tcuda::check((tcuda::abi::Address)address, bits / 8, false, __builtin_return_address(0));                          \
    tcuda::check((tcuda::abi::Address)address, bits / 8, true, __builtin_return_address(0));                           \
    tcuda::touch((tcuda::abi::Address)address, bits / 8, tcuda::abi::Touch::atomic_of_device,                          \
                 __builtin_return_address(0));
#define TCUDA_ATOMIC_UPDATE(bits, name, expression)                                                                    \
    TCUDA_HIDDEN TCUDA_UNSANITIZED tcuda_bits##bits __tsan_atomic##bits##_##name(volatile tcuda_bits##bits *address,   \
                                                                                 tcuda_bits##bits value, int order) {  \
        TCUDA_BEFORE(order)                                                                                            \
        TCUDA_CHECK_UPDATE(bits)                                                                                       \
        const tcuda_bits##bits old = *address;                                                                         \
        *address = tcuda_bits##bits(expression);                                                                       \
        TCUDA_AFTER(order)                                                                                             \
        return old;                                                                                                    \
    }
#define TCUDA_ATOMIC_COMPARE(bits, name)                                                                               \
    TCUDA_HIDDEN TCUDA_UNSANITIZED int __tsan_atomic##bits##_##name(                                                   \
        volatile tcuda_bits##bits *address, tcuda_bits##bits *expected, tcuda_bits##bits value, int order, int) {      \
        TCUDA_BEFORE(order)                                                                                            \
        tcuda::touch((tcuda::abi::Address)address, bits / 8, tcuda::abi::Touch::compared,                              \
                     __builtin_return_address(0));                                                                     \
        TCUDA_CHECK_UPDATE(bits)                                                                                       \
        const tcuda_bits##bits old = *address;                                                                         \
        const bool same = old == *expected;                                                                            \
        (same ? *address : *expected) = same ? value : old;                                                            \
        TCUDA_AFTER(order)                                                                                             \
        return same;                                                                                                   \
    }
// clang calls this function for both.
#define TCUDA_ATOMIC_COMPARED(bits)                                                                                    \
    TCUDA_HIDDEN TCUDA_UNSANITIZED tcuda_bits##bits __tsan_atomic##bits##_compare_exchange_val(                        \
        volatile tcuda_bits##bits *address, tcuda_bits##bits expected, tcuda_bits##bits value, int order, int) {       \
        TCUDA_BEFORE(order)                                                                                            \
        tcuda::touch((tcuda::abi::Address)address, bits / 8, tcuda::abi::Touch::compared,                              \
                     __builtin_return_address(0));                                                                     \
        TCUDA_CHECK_UPDATE(bits)                                                                                       \
        const tcuda_bits##bits old = *address;                                                                         \
        if (old == expected)                                                                                           \
            *address = value;                                                                                          \
        TCUDA_AFTER(order)                                                                                             \
        return old;                                                                                                    \
    }
#define TCUDA_ATOMICS(bits, type)                                                                                      \
    typedef type tcuda_bits##bits;                                                                                     \
    TCUDA_HIDDEN TCUDA_UNSANITIZED type __tsan_atomic##bits##_load(const volatile type *address, int order) {          \
        tcuda::check((tcuda::abi::Address)address, bits / 8, false, __builtin_return_address(0));                      \
        tcuda::touch((tcuda::abi::Address)address, bits / 8, tcuda::abi::Touch::atomic_read,                           \
                     __builtin_return_address(0));                                                                     \
        const type value = *address;                                                                                   \
        TCUDA_AFTER(order)                                                                                             \
        return value;                                                                                                  \
    }                                                                                                                  \
    TCUDA_HIDDEN TCUDA_UNSANITIZED void __tsan_atomic##bits##_store(volatile type *address, type value, int order) {   \
        TCUDA_BEFORE(order)                                                                                            \
        tcuda::check((tcuda::abi::Address)address, bits / 8, true, __builtin_return_address(0));                       \
        tcuda::touch((tcuda::abi::Address)address, bits / 8, tcuda::abi::Touch::atomic_of_device,                      \
                     __builtin_return_address(0));                                                                     \
        *address = value;                                                                                              \
    }                                                                                                                  \
    TCUDA_HIDDEN TCUDA_UNSANITIZED type __tsan_atomic##bits##_exchange(volatile type *address, type value,             \
                                                                       int order) {                                    \
        TCUDA_BEFORE(order)                                                                                            \
        tcuda::check((tcuda::abi::Address)address, bits / 8, true, __builtin_return_address(0));                       \
        TCUDA_CHECK_UPDATE(bits)                                                                                       \
        const type old = *address;                                                                                     \
        *address = value;                                                                                              \
        TCUDA_AFTER(order)                                                                                             \
        return old;                                                                                                    \
    }                                                                                                                  \
    TCUDA_ATOMIC_UPDATE(bits, fetch_add, old + value)                                                                  \
    TCUDA_ATOMIC_UPDATE(bits, fetch_sub, old - value)                                                                  \
    TCUDA_ATOMIC_UPDATE(bits, fetch_and, old & value)                                                                  \
    TCUDA_ATOMIC_UPDATE(bits, fetch_or, old | value)                                                                   \
    TCUDA_ATOMIC_UPDATE(bits, fetch_xor, old ^ value)                                                                  \
    TCUDA_ATOMIC_UPDATE(bits, fetch_nand, ~(old & value))                                                              \
    TCUDA_ATOMIC_COMPARE(bits, compare_exchange_strong)                                                                \
    TCUDA_ATOMIC_COMPARE(bits, compare_exchange_weak)                                                                  \
    TCUDA_ATOMIC_COMPARED(bits)
TCUDA_ATOMICS(8, unsigned char)
TCUDA_ATOMICS(16, unsigned short)
TCUDA_ATOMICS(32, unsigned int)
TCUDA_ATOMICS(64, unsigned long long)
#undef TCUDA_ATOMICS
#undef TCUDA_ATOMIC_COMPARE
#undef TCUDA_ATOMIC_COMPARED
#undef TCUDA_ATOMIC_UPDATE
#undef TCUDA_CHECK_UPDATE
#undef TCUDA_AFTER
#undef TCUDA_BEFORE
#pragma GCC pop_options
TCUDA_HIDDEN void __tsan_atomic_thread_fence(int order) {
    if (order >= 1)
        tcuda::fence(tcuda::abi::Scope::device);
}
TCUDA_HIDDEN void __tsan_atomic_signal_fence(int) {}

#else

TCUDA_CHECK(__asan_load1_noabort, tcuda::abi::Address, 1, false)
TCUDA_CHECK(__asan_store1_noabort, tcuda::abi::Address, 1, true)
#define TCUDA_CHECKS_OF(size)                                                                                          \
    TCUDA_ALIGNED_CHECK(__asan_load##size##_noabort, tcuda::abi::Address, size, false)                                 \
    TCUDA_ALIGNED_CHECK(__asan_store##size##_noabort, tcuda::abi::Address, size, true)
TCUDA_CHECKS_OF(2)
TCUDA_CHECKS_OF(4)
TCUDA_CHECKS_OF(8)
TCUDA_CHECKS_OF(16)
#undef TCUDA_CHECKS_OF
TCUDA_RANGE_CHECK(__asan_loadN_noabort, tcuda::abi::Address, false)
TCUDA_RANGE_CHECK(__asan_storeN_noabort, tcuda::abi::Address, true)
TCUDA_HIDDEN void __asan_handle_no_return() {}
TCUDA_HIDDEN void __asan_before_dynamic_init(tcuda::abi::Address) {}
TCUDA_HIDDEN void __asan_after_dynamic_init() {}

#endif

#undef TCUDA_RANGE_CHECK
#undef TCUDA_ALIGNED_CHECK
#undef TCUDA_CHECK

} // extern "C"
#endif
