// The elements to which the pointers among the parameters of a kernel point, so that a launch can check the arrays.
#pragma once

#include "tcuda/launch.h"

namespace tcuda {

template <class T>
struct Unqualified {
    typedef T type;
};
template <class T>
struct Unqualified<const T> : Unqualified<T> {};
template <class T>
struct Unqualified<volatile T> : Unqualified<T> {};
template <class T>
struct Unqualified<const volatile T> : Unqualified<T> {};

template <class T, char kind>
struct Size {
    static constexpr char value = static_cast<char>('0' + sizeof(T));
};
// The size of a structure need not be known, and says nothing about the numbers in it.
template <class T>
struct Size<T, 's'> {
    static constexpr char value = '0';
};
template <class T>
struct Size<T, 'p'> {
    static constexpr char value = '0';
};

// The kind as in `KindOf`, and the digit of the size; 0 for a parameter that is no pointer to numbers.
template <class T>
struct Element {
    static constexpr char kind = '-', size = '0';
};
template <class T>
struct Element<T *> {
    static constexpr char kind = KindOf<typename Unqualified<T>::type>::value;
    static constexpr char size = Size<T, kind>::value;
};

struct Elements {
    const char *name, *kinds, *sizes;
};

template <class... Types>
struct ElementsOf {
    static const char kinds[], sizes[];
};
template <class... Types>
const char ElementsOf<Types...>::kinds[] = {Element<Types>::kind..., 0};
template <class... Types>
const char ElementsOf<Types...>::sizes[] = {Element<Types>::size..., 0};

template <class... Types>
constexpr Elements elements_of(const char *name, void (*)(Types...)) {
    return {name, ElementsOf<Types...>::kinds, ElementsOf<Types...>::sizes};
}
template <class T>
constexpr Elements elements_of(const char *name, T *) {
    return {name, "", ""};
}

}  // namespace tcuda

// TCUDA_ELEMENTS(symbol, "name", function) lists the elements of the parameters of a kernel.
#define TCUDA_ELEMENTS(symbol, name, ...)                                                                              \
    extern "C" __attribute__((visibility("default"))) const ::tcuda::Elements symbol;                                  \
    const ::tcuda::Elements symbol = ::tcuda::elements_of(name, &__VA_ARGS__);
