// The arrays and indices of CuPy's elementwise and reduction kernels.
#pragma once

#include "tcuda/freestanding.h"

// Lets `i` run through the indices below `n` that belong to the calling thread.
#define CUPY_FOR(i, n)                                                                                                 \
    for (ptrdiff_t i = static_cast<ptrdiff_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < (n);                         \
         i += static_cast<ptrdiff_t>(blockDim.x) * gridDim.x)

// The constant of <math.h>, which CuPy's header defines too.
#ifndef M_PI
#define M_PI 3.14159265358979323846
#endif

// The traits that CuPy's header has for code without <type_traits>.
namespace cupy {
namespace type_traits {

template <bool condition, class Yes, class No> struct conditional {
    typedef Yes type;
};
template <class Yes, class No> struct conditional<false, Yes, No> {
    typedef No type;
};

template <bool condition, class T = void> struct enable_if {};
template <class T> struct enable_if<true, T> {
    typedef T type;
};

template <typename T, typename Other> struct is_same {
    static const bool value = false;
};
template <typename T> struct is_same<T, T> {
    static const bool value = true;
};

} // namespace type_traits
} // namespace cupy

// An array of `_ndim` axes. `_c_contiguous` says that the elements lie in row-major order without gaps, and
// `_use_32bit_indexing` that 32 bits hold the place of each element.
template <typename T, int _ndim, bool _c_contiguous = false, bool _use_32bit_indexing = false> class CArray {
  public:
    static const int ndim = _ndim;
    static const bool c_contiguous = _c_contiguous;
    using index_t = typename cupy::type_traits::conditional<_use_32bit_indexing, int, ptrdiff_t>::type;

    CArray() : data_(nullptr), size_(1), shape_(), strides_() {}

    template <typename Length, typename Stride>
    CArray(T *data, const Length *shape, const Stride *strides) : data_(data), size_(1) {
        for (int axis = 0; axis < _ndim; ++axis) {
            size_ *= shape[axis];
            shape_[axis] = shape[axis];
            strides_[axis] = strides[axis];
        }
    }

    template <typename Length> CArray(T *data, const Length *shape) : data_(data), size_(1) {
        static_assert(_c_contiguous, "an array with gaps needs strides");
        for (int axis = _ndim - 1; axis >= 0; --axis) {
            strides_[axis] = size_ * sizeof(T);
            shape_[axis] = shape[axis];
            size_ *= shape[axis];
        }
    }

    template <typename Length>
    CArray(T *data, std::initializer_list<Length> shape) : CArray(data, shape.begin()) {}

    template <typename Length, typename Stride>
    CArray(T *data, std::initializer_list<Length> shape, std::initializer_list<Stride> strides)
        : CArray(data, shape.begin(), strides.begin()) {}

    ptrdiff_t size() const { return size_; }
    const ptrdiff_t *shape() const { return shape_; }
    const ptrdiff_t *strides() const { return strides_; }

    // The element at the given index of each axis.
    template <typename Index> T &operator[](const Index (&index)[_ndim]) { return at(index); }
    template <typename Index> const T &operator[](const Index (&index)[_ndim]) const { return at(index); }
    template <typename Index> T &operator[](std::initializer_list<Index> index) { return at(index.begin()); }
    template <typename Index> const T &operator[](std::initializer_list<Index> index) const {
        return at(index.begin());
    }

    // The element at a place in row-major order.
    T &operator[](ptrdiff_t place) { return at(place); }
    const T &operator[](ptrdiff_t place) const { return at(place); }

  private:
    T *data_;
    ptrdiff_t size_;
    ptrdiff_t shape_[_ndim];
    ptrdiff_t strides_[_ndim];

    T &element(ptrdiff_t offset) const {
        return *reinterpret_cast<T *>(reinterpret_cast<char *>(const_cast<void *>(static_cast<const void *>(data_))) +
                                      offset);
    }

    template <typename Index> T &at(const Index *index) const {
        if (_c_contiguous && _ndim == 1)
            return data_[index[0]];
        ptrdiff_t offset = 0;
        for (int axis = 0; axis < _ndim; ++axis)
            offset += strides_[axis] * static_cast<ptrdiff_t>(index[axis]);
        return element(offset);
    }

    T &at(ptrdiff_t place) const {
        if (_c_contiguous)
            return data_[place];
        ptrdiff_t offset = 0;
        index_t rest = static_cast<index_t>(place);
        for (int axis = _ndim - 1; axis > 0; --axis) {
            const index_t length = static_cast<index_t>(shape_[axis]);
            offset += strides_[axis] * (rest % length);
            rest /= length;
        }
        return element(offset + strides_[0] * rest);
    }
};

template <typename T, bool _use_32bit_indexing> class CArray<T, 0, true, _use_32bit_indexing> {
  public:
    static const int ndim = 0;
    static const bool c_contiguous = true;
    using index_t = typename cupy::type_traits::conditional<_use_32bit_indexing, int, ptrdiff_t>::type;

    CArray() : data_(nullptr) {}
    explicit CArray(T *data) : data_(data) {}
    template <typename Length, typename Stride> CArray(T *data, const Length *, const Stride *) : data_(data) {}

    ptrdiff_t size() const { return 1; }
    const ptrdiff_t *shape() const { return nullptr; }
    const ptrdiff_t *strides() const { return nullptr; }

    template <typename Index> T &operator[](const Index &) { return *data_; }
    template <typename Index> T operator[](const Index &) const { return *data_; }

  private:
    T *data_;
};

// The shape of a loop, and the index of the current element along each axis.
template <int _ndim, bool _use_32bit_indexing = false> class CIndexer {
  public:
    static const int ndim = _ndim;
    using index_t = ptrdiff_t[_ndim];

    CIndexer() : size_(1), shape_(), index_() {}

    template <typename Length> explicit CIndexer(const Length *shape) : size_(1), index_() {
        for (int axis = 0; axis < _ndim; ++axis) {
            size_ *= shape[axis];
            shape_[axis] = shape[axis];
        }
    }

    template <typename Length> CIndexer(std::initializer_list<Length> shape) : CIndexer(shape.begin()) {}

    ptrdiff_t size() const { return size_; }
    const index_t &get() const { return index_; }

    // Makes the element at a place in row-major order the current element.
    void set(ptrdiff_t place) {
        if (_use_32bit_indexing)
            split(static_cast<unsigned>(place));
        else
            split(place);
    }

  private:
    ptrdiff_t size_;
    ptrdiff_t shape_[_ndim];
    index_t index_;

    template <typename Place> void split(Place place) {
        for (int axis = _ndim - 1; axis > 0; --axis) {
            const Place length = static_cast<Place>(shape_[axis]);
            index_[axis] = place % length;
            place /= length;
        }
        index_[0] = place;
    }
};

template <bool _use_32bit_indexing> class CIndexer<0, _use_32bit_indexing> {
  public:
    static const int ndim = 0;

    CIndexer() {}
    template <typename Length> explicit CIndexer(const Length *) {}

    ptrdiff_t size() const { return 1; }
    void set(ptrdiff_t) {}
    const ptrdiff_t *get() const { return nullptr; }
};

namespace tcuda {

template <typename Integer> Integer floor_of_quotient(Integer x, Integer y) {
    if (y == 0)
        return 0;
    const Integer quotient = x / y;
    return quotient - ((x < 0) != (y < 0) && quotient * y != x);
}

} // namespace tcuda

inline int _floor_divide(int x, int y) { return tcuda::floor_of_quotient(x, y); }
inline long long _floor_divide(long long x, long long y) { return tcuda::floor_of_quotient(x, y); }
inline unsigned _floor_divide(unsigned x, unsigned y) { return y == 0 ? 0 : x / y; }
inline unsigned long long _floor_divide(unsigned long long x, unsigned long long y) { return y == 0 ? 0 : x / y; }
inline float _floor_divide(float x, float y) { return __builtin_floorf(x / y); }
inline double _floor_divide(double x, double y) { return __builtin_floor(x / y); }
