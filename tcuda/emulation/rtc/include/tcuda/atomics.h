// The atomic functions. Nothing interrupts a thread between the load and the store, so plain accesses are atomic.
#pragma once

#include "tcuda/conversions.h"
#include "tcuda/launch.h"
#include "tcuda/memory.h"

namespace tcuda {

// A loop that waits for another thread calls atomic functions that change nothing. Such calls let other threads go on.
inline void after_exchange_without_effect() {
    pause();
}
inline void after_operation_without_effect() {
    static unsigned int count;
    if (++count % 64 == 0) pause();
}

template <class T, class Operation>
inline T atomically(T *address, Operation operation) {
    T previous = *address;
    T next = operation(previous);
    *address = next;
    if (next == previous) after_operation_without_effect();
    return previous;
}

template <class T>
inline T exchanged(T *address, T value) {
    // Few programs use the previous value, so its read counts as a read of what the exchange itself has written.
    check(reinterpret_cast<abi::Address>(address), sizeof(T), true);
    T previous = *address;
    *address = value;
    if (value == previous) after_exchange_without_effect();
    return previous;
}

template <class T>
inline T compared_and_exchanged(T *address, T expected, T value) {
    T previous = *address;
    if (previous == expected) {
        *address = value;
    } else {
        after_exchange_without_effect();
    }
    return previous;
}

}  // namespace tcuda

#define TCUDA_ATOMIC_IN_SCOPE(name, type, body) \
    inline type name(type *address, type value) { \
        return body; \
    }
#define TCUDA_ATOMIC_OF(name, type, body) \
    TCUDA_ATOMIC_IN_SCOPE(name, type, body) \
    TCUDA_ATOMIC_IN_SCOPE(name##_block, type, body) \
    TCUDA_ATOMIC_IN_SCOPE(name##_system, type, body)
#define TCUDA_ATOMIC(name, type, expression) \
    TCUDA_ATOMIC_OF(name, type, ::tcuda::atomically(address, [=](type old) -> type { return expression; }))
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
TCUDA_ATOMIC_OF(atomicExch, int, ::tcuda::exchanged(address, value))
TCUDA_ATOMIC_OF(atomicExch, unsigned int, ::tcuda::exchanged(address, value))
TCUDA_ATOMIC_OF(atomicExch, unsigned long long, ::tcuda::exchanged(address, value))
TCUDA_ATOMIC_OF(atomicExch, float, ::tcuda::exchanged(address, value))
#undef TCUDA_ATOMIC
#undef TCUDA_ATOMIC_OF
#undef TCUDA_ATOMIC_IN_SCOPE

// Each part is added on its own, as on a GPU.
#define TCUDA_ADD_PARTS(name, type, ...) \
    inline type name(type *address, type value) { \
        type previous = *address; \
        *address = __VA_ARGS__; \
        return previous; \
    }
#define TCUDA_ADD_IN_SCOPES(type, ...) \
    TCUDA_ADD_PARTS(atomicAdd, type, __VA_ARGS__) \
    TCUDA_ADD_PARTS(atomicAdd_block, type, __VA_ARGS__) \
    TCUDA_ADD_PARTS(atomicAdd_system, type, __VA_ARGS__)
TCUDA_ADD_IN_SCOPES(float2, {previous.x + value.x, previous.y + value.y})
TCUDA_ADD_IN_SCOPES(float4, {previous.x + value.x, previous.y + value.y, previous.z + value.z, previous.w + value.w})
#undef TCUDA_ADD_IN_SCOPES
#undef TCUDA_ADD_PARTS

#define TCUDA_COMPARE_IN_SCOPE(name, type) \
    inline type name(type *address, type expected, type value) { \
        return ::tcuda::compared_and_exchanged(address, expected, value); \
    }
#define TCUDA_COMPARE(type) \
    TCUDA_COMPARE_IN_SCOPE(atomicCAS, type) \
    TCUDA_COMPARE_IN_SCOPE(atomicCAS_block, type) \
    TCUDA_COMPARE_IN_SCOPE(atomicCAS_system, type)
TCUDA_COMPARE(int)
TCUDA_COMPARE(unsigned int)
TCUDA_COMPARE(unsigned long long)
TCUDA_COMPARE(unsigned short)
#undef TCUDA_COMPARE
#undef TCUDA_COMPARE_IN_SCOPE
