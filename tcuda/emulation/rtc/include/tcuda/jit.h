// What kernels that are written in Python (cupyx.jit) use beside the device language and CuPy's headers.
#pragma once

#include "tcuda/device_and_cupy.h"

namespace tcuda {
namespace jit {

// Numbers as conditions.

template <class T> inline bool truth(const T &value) { return value != T(0); }
template <class T> inline bool truth(const thrust::complex<T> &value) { return value.real() != 0 || value.imag() != 0; }
inline bool truth(const float16 &value) { return static_cast<float>(value) != 0; }

// The universal functions that are not one expression.

template <class T> inline T absolute(const T &value) { return value < T(0) ? static_cast<T>(-value) : value; }
template <> inline float absolute(const float &value) { return __builtin_fabsf(value); }
template <> inline double absolute(const double &value) { return __builtin_fabs(value); }
template <class T> inline T absolute(const thrust::complex<T> &value) { return abs(value); }

template <class T> inline T conjugate(const T &value) { return value; }
template <class T> inline thrust::complex<T> conjugate(const thrust::complex<T> &value) { return conj(value); }

template <class T> inline T square(const T &value) { return value * value; }

template <class T> inline T sign(const T &value) { return value != value ? value : T(value > T(0)) - T(value < T(0)); }

// The inverse of the integer 0 is 0. Half of 1 is 0 for integers only.
template <class T> inline T reciprocal(const T &value) {
    return T(1) / T(2) == T(0) && value == T(0) ? T(0) : T(1) / value;
}

template <class T> inline T fmod_of_integers(const T &x, const T &y) {
    return y == T(0) ? T(0) : T(::fmod(double(x), double(y)));
}

template <class T> inline T remainder_of(const T &x, const T &y) { return x - _floor_divide(x, y) * y; }

// The greater number. `propagate` says whether a NaN is the greater one, and else the other number is.
template <class T> inline T greater(const T &x, const T &y, bool propagate) {
    if (x != x) return propagate ? x : y;
    if (y != y) return propagate ? y : x;
    return x < y ? y : x;
}
template <class T> inline T smaller(const T &x, const T &y, bool propagate) {
    if (x != x) return propagate ? x : y;
    if (y != y) return propagate ? y : x;
    return y < x ? y : x;
}

template <class T> inline T log_of_sum(const T &x, const T &y) {
    if (x == y) return x + log(T(2));
    return x > y ? x + log1p(exp(y - x)) : y + log1p(exp(x - y));
}

// A power of an integer. A negative exponent gives 1 and -1 for these bases, and 0 for others.
template <class T> inline T power(T base, T exponent) {
    if (exponent < T(0)) return base == T(1) ? T(1) : base == T(-1) ? (exponent & 1 ? T(-1) : T(1)) : T(0);
    T result = 1;
    for (; exponent != T(0); exponent >>= 1) {
        if (exponent & 1) result *= base;
        base *= base;
    }
    return result;
}
inline float power(float base, float exponent) { return pow(base, exponent); }
inline double power(double base, double exponent) { return pow(base, exponent); }
template <class T> inline thrust::complex<T> power(const thrust::complex<T> &base, const thrust::complex<T> &exponent) {
    return pow(base, exponent);
}

// Tuples.

template <class... Types> struct Tuple;
template <> struct Tuple<> {};
template <class First, class... Rest> struct Tuple<First, Rest...> {
    First first;
    Tuple<Rest...> rest;

    Tuple() : first(), rest() {}
    Tuple(const First &first, const Rest &...rest) : first(first), rest(rest...) {}
};

template <int place> struct Item {
    template <class T> static auto of(T &tuple) -> decltype(Item<place - 1>::of(tuple.rest)) {
        return Item<place - 1>::of(tuple.rest);
    }
};
template <> struct Item<0> {
    template <class T> static auto of(T &tuple) -> decltype((tuple.first)) { return tuple.first; }
};

template <int place, class... Types> inline auto get(Tuple<Types...> &tuple) -> decltype(Item<place>::of(tuple)) {
    return Item<place>::of(tuple);
}
template <int place, class... Types> inline auto get(Tuple<Types...> &&tuple) {
    auto item = Item<place>::of(tuple);
    return item;
}

// Parts of arrays, and iterators.

template <class T, int ndim, bool contiguous, bool is_short, class... Index>
inline CArray<T, ndim - sizeof...(Index), contiguous, is_short> part(CArray<T, ndim, contiguous, is_short> array,
                                                                      Index... index) {
    const ptrdiff_t places[] = {index...};
    constexpr int fixed = sizeof...(Index);
    ptrdiff_t offset = 0;
    for (int axis = 0; axis < fixed; ++axis) offset += places[axis] * array.strides()[axis];
    char *data = reinterpret_cast<char *>(&array[static_cast<ptrdiff_t>(0)]) + offset;
    return {reinterpret_cast<T *>(data), array.shape() + fixed, array.strides() + fixed};
}

template <class T> class Steps {
    char *place_;
    ptrdiff_t step_;

public:
    using value_type = T;

    Steps() : place_(nullptr), step_(0) {}
    Steps(T *place, ptrdiff_t step) : place_(reinterpret_cast<char *>(place)), step_(step) {}

    T &operator[](ptrdiff_t index) const { return *reinterpret_cast<T *>(place_ + index * step_); }
    T &operator*() const { return (*this)[0]; }
    Steps operator+(ptrdiff_t count) const { return {reinterpret_cast<T *>(place_ + count * step_), step_}; }
    Steps operator-(ptrdiff_t count) const { return *this + -count; }
    ptrdiff_t operator-(const Steps &other) const { return step_ == 0 ? 0 : (place_ - other.place_) / step_; }
    bool operator==(const Steps &other) const { return place_ == other.place_; }
    bool operator!=(const Steps &other) const { return place_ != other.place_; }
};

template <class T, bool is_short> inline T *begin(CArray<T, 1, true, is_short> array) {
    return &array[static_cast<ptrdiff_t>(0)];
}
template <class T, bool is_short> inline Steps<T> begin(CArray<T, 1, false, is_short> array) {
    return {&array[static_cast<ptrdiff_t>(0)], array.strides()[0]};
}
template <class T, bool contiguous, bool is_short> inline auto end(CArray<T, 1, contiguous, is_short> array) {
    return begin(array) + array.size();
}

// Copies bytes, of which each thread of the group copies some elements.
template <class Group, class T> inline void copy_by(const Group &group, T *to, const T *from, unsigned int bytes) {
    for (unsigned int place = group.thread_rank(); place < bytes / sizeof(T); place += group.size())
        to[place] = from[place];
}

// Reductions of a warp and of a block.

struct Sum {
    template <class T> T operator()(const T &x, const T &y) const { return static_cast<T>(x + y); }
};
template <class T> struct Order {
    static bool less(const T &x, const T &y) { return x < y; }
};
template <class T> struct Order<thrust::complex<T>> {
    static bool less(const thrust::complex<T> &x, const thrust::complex<T> &y) {
        return x.real() < y.real() || (x.real() == y.real() && x.imag() < y.imag());
    }
};
struct Max {
    template <class T> T operator()(const T &x, const T &y) const { return Order<T>::less(x, y) ? y : x; }
};
struct Min {
    template <class T> T operator()(const T &x, const T &y) const { return Order<T>::less(y, x) ? y : x; }
};

// The values are joined in the order of the instructions that exchange values in a warp: neighbours first.
template <class T, class Operation> inline T joined_in_pairs(const T *values, unsigned int count, Operation operation) {
    T held[32];
    for (unsigned int place = 0; place < count; ++place) held[place] = values[place];
    for (unsigned int step = 1; step < count; step *= 2)
        for (unsigned int place = 0; place + step < count; place += 2 * step)
            held[place] = operation(held[place], held[place + step]);
    return held[0];
}

template <class T> class WarpReduce {
public:
    struct TempStorage {
        T values[32];
    };

    WarpReduce() : storage_(nullptr) {}
    explicit WarpReduce(TempStorage *storage) : storage_(storage) {}

    // The first lane of the warp has the result.
    template <class Operation> T Reduce(const T &value, Operation operation) const {
        storage_->values[::tcuda::lane()] = value;
        __syncwarp();
        return ::tcuda::lane() == 0 ? joined_in_pairs(storage_->values, 32, operation) : value;
    }

private:
    TempStorage *storage_;
};

template <class T, int threads> class BlockReduce {
public:
    struct TempStorage {
        T values[threads];
    };

    BlockReduce() : storage_(nullptr) {}
    explicit BlockReduce(TempStorage *storage) : storage_(storage) {}

    // The first thread of the block has the result.
    template <class Operation> T Reduce(const T &value, Operation operation) const {
        const unsigned int thread = threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
        storage_->values[thread] = value;
        __syncthreads();
        if (thread != 0) return value;
        T result = joined_in_pairs(storage_->values, threads < 32 ? threads : 32, operation);
        for (int first = 32; first < threads; first += 32) {
            const unsigned int count = threads - first < 32 ? threads - first : 32;
            result = operation(result, joined_in_pairs(storage_->values + first, count, operation));
        }
        return result;
    }

private:
    TempStorage *storage_;
};

} // namespace jit
} // namespace tcuda
