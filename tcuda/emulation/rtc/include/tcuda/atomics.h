// The atomic functions. Nothing interrupts a thread between the load and the store, so plain accesses are atomic.
#pragma once

#include "tcuda/conversions.h"
#include "tcuda/memory.h"
#include "tcuda/races.h"

namespace tcuda {

// A loop that waits for another thread calls atomic functions that change nothing. Such calls let other threads go on.
inline void after_exchange_without_effect() {
    pause();
}
inline TCUDA_UNRECORDED void after_operation_without_effect() {
    static unsigned int count;
    if (++count % 64 == 0) pause();
}

// Comes before an exchange. Few programs use the previous value, so its read counts as a read of what the exchange
// itself has written.
template <class T>
inline TCUDA_UNSANITIZED __attribute__((always_inline)) void check_write(T *address) {
#ifdef TCUDA_CHECKED
    check(reinterpret_cast<abi::Address>(address), sizeof(T), true, __builtin_return_address(0));
#else
    (void)address;
#endif
}

#ifdef TCUDA_RACES
// The accesses of an atomic function are one access, whose line is that of the call of the function.
#define TCUDA_IN_ATOMIC TCUDA_UNSANITIZED __attribute__((noinline))

template <class T>
inline TCUDA_UNSANITIZED __attribute__((always_inline)) void check_comparison(T *address) {
    const auto place = reinterpret_cast<abi::Address>(address);
    check_alignment(place, alignof(T), true, __builtin_return_address(0));
    check(place, sizeof(T), false, __builtin_return_address(0));
}
template <class T>
inline TCUDA_UNSANITIZED __attribute__((always_inline)) void check_update(T *address) {
    check_comparison(address);
    check(reinterpret_cast<abi::Address>(address), sizeof(T), true, __builtin_return_address(0));
}

constexpr TCUDA_UNSANITIZED abi::Touch touch_in(abi::Scope scope) {
    return scope == abi::Scope::block ? abi::Touch::atomic_of_block : abi::Touch::atomic_of_device;
}
constexpr TCUDA_UNSANITIZED abi::Touch read_in(abi::Scope scope) {
    return scope == abi::Scope::block ? abi::Touch::atomic_read_of_block : abi::Touch::atomic_read;
}
#define TCUDA_TOUCH(address, kind) \
    touch(reinterpret_cast<abi::Address>(address), sizeof(T), kind, __builtin_return_address(0))
template <class T>
inline TCUDA_UNSANITIZED __attribute__((always_inline)) bool noted_update(T *address, abi::Scope scope,
                                                                         const void *site) {
    return scope == abi::Scope::device && noted_update<sizeof(T)>(reinterpret_cast<abi::Address>(address), site);
}
#define TCUDA_TOUCH_UPDATE(address, scope) \
    if (!noted_update(address, scope, __builtin_return_address(0))) TCUDA_TOUCH(address, touch_in(scope))
#else
#define TCUDA_IN_ATOMIC
#define TCUDA_TOUCH_UPDATE(address, scope) (void)(scope)
template <class T>
inline void check_update(T *) {}
#endif

template <class T, class Operation>
inline TCUDA_IN_ATOMIC T atomically(T *address, abi::Scope scope, Operation operation) {
    check_update(address);
    TCUDA_TOUCH_UPDATE(address, scope);
    T previous = *address;
    T next = operation(previous);
    *address = next;
    if (next == previous) after_operation_without_effect();
    return previous;
}

template <class T>
inline TCUDA_IN_ATOMIC T loaded(T *address, abi::Scope scope) {
#ifdef TCUDA_RACES
    const auto place = reinterpret_cast<abi::Address>(address);
    check_alignment(place, alignof(T), false, __builtin_return_address(0));
    check(place, sizeof(T), false, __builtin_return_address(0));
    TCUDA_TOUCH(address, read_in(scope));
#else
    (void)scope;
#endif
    T found = *address;
    after_operation_without_effect();
    return found;
}

template <class T>
inline TCUDA_IN_ATOMIC T exchanged(T *address, abi::Scope scope, T value) {
    check_write(address);
    check_update(address);
    TCUDA_TOUCH_UPDATE(address, scope);
    T previous = *address;
    *address = value;
    if (value == previous) after_exchange_without_effect();
    return previous;
}

template <class T>
inline TCUDA_IN_ATOMIC T compared_and_exchanged(T *address, abi::Scope scope, T expected, T value) {
#ifdef TCUDA_RACES
    check_comparison(address);
    // A comparison that fails only reads, also for a race between streams.
    if (*address == expected) check_write(address);
    // An update that the module notes has no rival that reads, and stands for a comparison that fails too.
    if (!noted_update(address, scope, __builtin_return_address(0))) {
        TCUDA_TOUCH(address, abi::Touch::compared);
        // A comparison that fails only reads.
        TCUDA_TOUCH(address, *address == expected ? touch_in(scope) : read_in(scope));
    }
#else
    (void)scope;
#endif
    T previous = *address;
    if (previous == expected) {
        *address = value;
    } else {
        after_exchange_without_effect();
    }
    return previous;
}

}  // namespace tcuda

#define TCUDA_ATOMIC_IN_SCOPE(name, type, in, body) \
    TCUDA_AT_CALLER inline type name(type *address, type value) { \
        const auto scope = ::tcuda::abi::Scope::in; \
        return body; \
    }
#define TCUDA_ATOMIC_OF(name, type, body) \
    TCUDA_ATOMIC_IN_SCOPE(name, type, device, body) \
    TCUDA_ATOMIC_IN_SCOPE(name##_block, type, block, body) \
    TCUDA_ATOMIC_IN_SCOPE(name##_system, type, device, body)
#define TCUDA_ATOMIC(name, type, expression) \
    TCUDA_ATOMIC_OF(name, type, ::tcuda::atomically(address, scope, [=](type old) TCUDA_UNRECORDED -> type { return expression; }))
TCUDA_ATOMIC(atomicAdd, int, old + value)
TCUDA_ATOMIC(atomicAdd, unsigned int, old + value)
TCUDA_ATOMIC(atomicAdd, unsigned long long, old + value)
TCUDA_ATOMIC(atomicAdd, float, old + value)
TCUDA_ATOMIC(atomicAdd, double, old + value)
TCUDA_ATOMIC(atomicSub, int, old - value)
TCUDA_ATOMIC(atomicSub, unsigned int, old - value)
TCUDA_ATOMIC(atomicMin, int, value < old ? value : old)
TCUDA_ATOMIC(atomicMin, unsigned int, value < old ? value : old)
TCUDA_ATOMIC(atomicMin, long long, value < old ? value : old)
TCUDA_ATOMIC(atomicMin, unsigned long long, value < old ? value : old)
TCUDA_ATOMIC(atomicMax, int, old < value ? value : old)
TCUDA_ATOMIC(atomicMax, unsigned int, old < value ? value : old)
TCUDA_ATOMIC(atomicMax, long long, old < value ? value : old)
TCUDA_ATOMIC(atomicMax, unsigned long long, old < value ? value : old)
TCUDA_ATOMIC(atomicAnd, int, old & value)
TCUDA_ATOMIC(atomicAnd, unsigned int, old & value)
TCUDA_ATOMIC(atomicAnd, unsigned long long, old & value)
TCUDA_ATOMIC(atomicOr, int, old | value)
TCUDA_ATOMIC(atomicOr, unsigned int, old | value)
TCUDA_ATOMIC(atomicOr, unsigned long long, old | value)
TCUDA_ATOMIC(atomicXor, int, old ^ value)
TCUDA_ATOMIC(atomicXor, unsigned int, old ^ value)
TCUDA_ATOMIC(atomicXor, unsigned long long, old ^ value)
TCUDA_ATOMIC(atomicInc, unsigned int, old >= value ? 0 : old + 1)
TCUDA_ATOMIC(atomicDec, unsigned int, old == 0 || old > value ? value : old - 1)
TCUDA_ATOMIC_OF(atomicExch, int, ::tcuda::exchanged(address, scope, value))
TCUDA_ATOMIC_OF(atomicExch, unsigned int, ::tcuda::exchanged(address, scope, value))
TCUDA_ATOMIC_OF(atomicExch, unsigned long long, ::tcuda::exchanged(address, scope, value))
TCUDA_ATOMIC_OF(atomicExch, float, ::tcuda::exchanged(address, scope, value))
#undef TCUDA_ATOMIC
#undef TCUDA_ATOMIC_OF
#undef TCUDA_ATOMIC_IN_SCOPE

// Each part is added on its own, as on a GPU.
namespace tcuda {

template <class T, class Sum>
inline TCUDA_IN_ATOMIC T added_in_parts(T *address, abi::Scope scope, Sum sum) {
    check_update(address);
    TCUDA_TOUCH_UPDATE(address, scope);
    T previous = *address;
    *address = sum(previous);
    return previous;
}

}  // namespace tcuda

#define TCUDA_ADD_PARTS(name, type, in, ...) \
    TCUDA_AT_CALLER inline type name(type *address, type value) { \
        return ::tcuda::added_in_parts(address, ::tcuda::abi::Scope::in, \
                                       [=](type previous) TCUDA_UNRECORDED -> type { return __VA_ARGS__; }); \
    }
#define TCUDA_ADD_IN_SCOPES(type, ...) \
    TCUDA_ADD_PARTS(atomicAdd, type, device, __VA_ARGS__) \
    TCUDA_ADD_PARTS(atomicAdd_block, type, block, __VA_ARGS__) \
    TCUDA_ADD_PARTS(atomicAdd_system, type, device, __VA_ARGS__)
TCUDA_ADD_IN_SCOPES(float2, {previous.x + value.x, previous.y + value.y})
TCUDA_ADD_IN_SCOPES(float4, {previous.x + value.x, previous.y + value.y, previous.z + value.z, previous.w + value.w})
#undef TCUDA_ADD_IN_SCOPES
#undef TCUDA_ADD_PARTS

#define TCUDA_COMPARE_IN_SCOPE(name, type, in) \
    TCUDA_AT_CALLER inline type name(type *address, type expected, type value) { \
        return ::tcuda::compared_and_exchanged(address, ::tcuda::abi::Scope::in, expected, value); \
    }
#define TCUDA_COMPARE(type) \
    TCUDA_COMPARE_IN_SCOPE(atomicCAS, type, device) \
    TCUDA_COMPARE_IN_SCOPE(atomicCAS_block, type, block) \
    TCUDA_COMPARE_IN_SCOPE(atomicCAS_system, type, device)
TCUDA_COMPARE(int)
TCUDA_COMPARE(unsigned int)
TCUDA_COMPARE(unsigned long long)
TCUDA_COMPARE(unsigned short)
#undef TCUDA_COMPARE
#undef TCUDA_COMPARE_IN_SCOPE
