// Memory: loads and stores with cache hints, copies, the heap of the device, fences, address spaces.
#pragma once

#include "tcuda/launch.h"

extern "C" {
void *memcpy(void *, const void *, size_t) noexcept;
void *memmove(void *, const void *, size_t) noexcept;
void *memset(void *, int, size_t) noexcept;
int memcmp(const void *, const void *, size_t) noexcept;
size_t strlen(const char *) noexcept;
// The heap of a device is an array of the module. The names of the functions differ in the object file, because the
// host's heap is no memory of a device.
void *malloc(size_t) noexcept __asm__("tcuda_heap_allocate");
void free(void *) noexcept __asm__("tcuda_heap_release");
// The compiler makes calloc of malloc and memset.
void *calloc(size_t, size_t) noexcept __asm__("tcuda_heap_allocate_zeros");
}

#define TCUDA_LOAD(name) \
    template <class T> \
    inline T name(const T *address) { \
        return *address; \
    }
TCUDA_LOAD(__ldg)
TCUDA_LOAD(__ldca)
TCUDA_LOAD(__ldcg)
TCUDA_LOAD(__ldcs)
TCUDA_LOAD(__ldcv)
TCUDA_LOAD(__ldlu)
#undef TCUDA_LOAD

namespace tcuda {

template <class T>
struct identity {
    using type = T;
};

}  // namespace tcuda

#define TCUDA_STORE(name) \
    template <class T> \
    inline void name(T *address, typename ::tcuda::identity<T>::type value) { \
        *address = value; \
    }
TCUDA_STORE(__stwb)
TCUDA_STORE(__stcg)
TCUDA_STORE(__stcs)
TCUDA_STORE(__stwt)
#undef TCUDA_STORE

// A loop that waits for another thread reads memory after a fence, so a fence lets the other threads go on.
inline void __threadfence() {
    __asm__ volatile("" ::: "memory");
    ::tcuda::pause();
}
inline void __threadfence_block() {
    __threadfence();
}
inline void __threadfence_system() {
    __threadfence();
}

namespace tcuda {

template <class T>
struct unsupported {
    static constexpr bool value = false;
};

}  // namespace tcuda

#define TCUDA_NO_ADDRESS_SPACE(name) \
    template <class T> \
    inline unsigned int name(const T *) { \
        static_assert(::tcuda::unsupported<T>::value, \
                      #name " is not available on an emulated device: an emulated device has one address space"); \
        return 0; \
    }
TCUDA_NO_ADDRESS_SPACE(__isGlobal)
TCUDA_NO_ADDRESS_SPACE(__isShared)
TCUDA_NO_ADDRESS_SPACE(__isConstant)
TCUDA_NO_ADDRESS_SPACE(__isLocal)
TCUDA_NO_ADDRESS_SPACE(__cvta_generic_to_shared)
TCUDA_NO_ADDRESS_SPACE(__cvta_generic_to_global)
TCUDA_NO_ADDRESS_SPACE(__cvta_generic_to_constant)
TCUDA_NO_ADDRESS_SPACE(__cvta_generic_to_local)
#undef TCUDA_NO_ADDRESS_SPACE
