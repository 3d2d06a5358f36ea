// The names that NVRTC knows without a header. If the headers of the host are included, the names come from there.
#pragma once

#ifdef TCUDA_HOST_HEADERS

#include <fenv.h>
#include <initializer_list>
#include <new>
#include <stdarg.h>
#include <stddef.h>

#else

using size_t = __SIZE_TYPE__;
using ptrdiff_t = __PTRDIFF_TYPE__;
using va_list = __builtin_va_list;

#define NULL __null
#define va_start(...) __builtin_va_start(__VA_ARGS__)
#define va_end(list) __builtin_va_end(list)
#define va_arg(list, type) __builtin_va_arg(list, type)
#define va_copy(to, from) __builtin_va_copy(to, from)

namespace tcuda {

template <class T> struct Referred {
    using type = T;
};
template <class T> struct Referred<T &> {
    using type = T;
};
template <class T> struct Referred<T &&> {
    using type = T;
};

} // namespace tcuda

namespace std {

// The compiler knows this class by its name, and fills these two members itself.
template <class T> class initializer_list {
public:
    using value_type = T;
    using reference = const T &;
    using const_reference = const T &;
    using size_type = size_t;
    using iterator = const T *;
    using const_iterator = const T *;

    constexpr initializer_list() noexcept : first(nullptr), count(0) {}
    constexpr size_t size() const noexcept { return count; }
    constexpr const T *begin() const noexcept { return first; }
    constexpr const T *end() const noexcept { return first + count; }

private:
    constexpr initializer_list(const T *first, size_t count) : first(first), count(count) {}

    const T *first;
    size_t count;
};

template <class T> constexpr const T *begin(initializer_list<T> list) noexcept { return list.begin(); }
template <class T> constexpr const T *end(initializer_list<T> list) noexcept { return list.end(); }

template <class T> constexpr typename ::tcuda::Referred<T>::type &&move(T &&value) noexcept {
    return static_cast<typename ::tcuda::Referred<T>::type &&>(value);
}
template <class T> constexpr T &&forward(typename ::tcuda::Referred<T>::type &value) noexcept {
    return static_cast<T &&>(value);
}
template <class T> constexpr T &&forward(typename ::tcuda::Referred<T>::type &&value) noexcept {
    return static_cast<T &&>(value);
}

} // namespace std

inline void *operator new(size_t, void *place) noexcept { return place; }
inline void *operator new[](size_t, void *place) noexcept { return place; }
inline void operator delete(void *, void *) noexcept {}
inline void operator delete[](void *, void *) noexcept {}

#endif
