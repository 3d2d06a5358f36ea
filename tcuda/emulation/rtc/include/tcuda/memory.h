// Memory: loads and stores with cache hints, copies, the heap of the device, fences, address spaces.
#pragma once

#include "tcuda/races.h"

extern "C" {

// The compiler adds no checks to calls of these functions, so functions of the module with checks take their place.
void *memcpy(void *, const void *, size_t) noexcept __asm__("tcuda_copy");
void *memmove(void *, const void *, size_t) noexcept __asm__("tcuda_move");
void *memset(void *, int, size_t) noexcept __asm__("tcuda_fill");
int memcmp(const void *, const void *, size_t) noexcept __asm__("tcuda_compare");
size_t strlen(const char *) noexcept;

// The heap is an array of the module, because the heap of the host is no memory of a device.
void *malloc(size_t) noexcept __asm__("tcuda_heap_allocate");
void free(void *) noexcept __asm__("tcuda_heap_release");
// The compiler may replace malloc and memset by calloc.
void *calloc(size_t, size_t) noexcept __asm__("tcuda_heap_allocate_zeros");

#ifdef __clang__
#define TCUDA_OF_HOST(name) __asm__("__real_" name)
#else
#define TCUDA_OF_HOST(name) __asm__(name)
#endif
void *tcuda_host_memmove(void *, const void *, size_t) noexcept TCUDA_OF_HOST("memmove");
void *tcuda_host_memset(void *, int, size_t) noexcept TCUDA_OF_HOST("memset");
#undef TCUDA_OF_HOST
int tcuda_host_memcmp(const void *, const void *, size_t) noexcept __asm__("memcmp");

}  // extern "C"

#if defined(TCUDA_UNCHECKED)
#elif defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define TCUDA_CHECKED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(kernel_address_sanitizer)
#define TCUDA_CHECKED 1
#endif
#endif

namespace tcuda {

inline TCUDA_UNSANITIZED __attribute__((always_inline)) void check_bytes(const void *address, size_t size, bool write,
                                                                         const void *site) {
#ifdef TCUDA_CHECKED
    if (size == 0) return;
    check(reinterpret_cast<abi::Address>(address), size, write, site);
    touch(reinterpret_cast<abi::Address>(address), size, write ? abi::Touch::write : abi::Touch::read, site);
#else
    (void)address, (void)size, (void)write, (void)site;
#endif
}

inline TCUDA_UNSANITIZED __attribute__((always_inline)) void *moved(void *to, const void *from, size_t size,
                                                                    const void *site) {
    check_bytes(from, size, false, site);
    check_bytes(to, size, true, site);
    return tcuda_host_memmove(to, from, size);
}

}  // namespace tcuda

extern "C" {

// The compiler calls these functions by the labels above, and does not count such calls as uses.
#define TCUDA_OF_MODULE __attribute__((used, weak, visibility("hidden"))) TCUDA_UNSANITIZED
#ifndef TCUDA_SUPPORT_APART
TCUDA_OF_MODULE void *tcuda_move(void *to, const void *from, size_t size) noexcept {
    return tcuda::moved(to, from, size, __builtin_return_address(0));
}
TCUDA_OF_MODULE void *tcuda_copy(void *to, const void *from, size_t size) noexcept {
    return tcuda::moved(to, from, size, __builtin_return_address(0));
}
TCUDA_OF_MODULE void *tcuda_fill(void *to, int value, size_t size) noexcept {
    tcuda::check_bytes(to, size, true, __builtin_return_address(0));
    return tcuda_host_memset(to, value, size);
}
TCUDA_OF_MODULE int tcuda_compare(const void *a, const void *b, size_t size) noexcept {
    tcuda::check_bytes(a, size, false, __builtin_return_address(0));
    tcuda::check_bytes(b, size, false, __builtin_return_address(0));
    return tcuda_host_memcmp(a, b, size);
}
#ifdef __clang__
// clang copies and fills large objects by calls of these names: the linker gives the names __wrap_memcpy and so on to
// calls of memcpy. Later versions call the names with __tsan_ if they check each access.
#define TCUDA_COPY(name)                                                                                               \
    TCUDA_OF_MODULE void *name(void *to, const void *from, size_t size) noexcept {                                     \
        return tcuda::moved(to, from, size, __builtin_return_address(0));                                              \
    }
#define TCUDA_FILL(name)                                                                                               \
    TCUDA_OF_MODULE void *name(void *to, int value, size_t size) noexcept {                                            \
        tcuda::check_bytes(to, size, true, __builtin_return_address(0));                                               \
        return tcuda_host_memset(to, value, size);                                                                     \
    }
TCUDA_COPY(__wrap_memcpy)
TCUDA_COPY(__wrap_memmove)
TCUDA_FILL(__wrap_memset)
TCUDA_COPY(__tsan_memcpy)
TCUDA_COPY(__tsan_memmove)
TCUDA_FILL(__tsan_memset)
#undef TCUDA_COPY
#undef TCUDA_FILL
#endif
#endif

}  // extern "C"

#define TCUDA_LOAD(name) \
    template <class T> \
    TCUDA_AT_CALLER inline T name(const T *address) { \
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
    TCUDA_AT_CALLER inline void name(T *address, typename ::tcuda::identity<T>::type value) { \
        *address = value; \
    }
TCUDA_STORE(__stwb)
TCUDA_STORE(__stcg)
TCUDA_STORE(__stcs)
TCUDA_STORE(__stwt)
#undef TCUDA_STORE

// A loop that waits for another thread may read memory after a fence, so a fence lets the other threads go on.
namespace tcuda {

inline void fence_and_pause(abi::Scope scope) {
    __asm__ volatile("" ::: "memory");
    fence(scope);
    pause();
}

}  // namespace tcuda

inline void __threadfence() {
    ::tcuda::fence_and_pause(::tcuda::abi::Scope::device);
}
inline void __threadfence_block() {
    ::tcuda::fence_and_pause(::tcuda::abi::Scope::block);
}
inline void __threadfence_system() {
    ::tcuda::fence_and_pause(::tcuda::abi::Scope::device);
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
