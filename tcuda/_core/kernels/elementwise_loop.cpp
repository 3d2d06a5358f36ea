#include "kernels/elementwise_loop.hpp"

#include <algorithm>
#include <cstdlib>

namespace tcuda {
namespace {

constexpr long long half_range = 1LL << 31; // sizes and offsets below fit in 32 bits

int bits_of(std::uint32_t number) {
    int bits = 0;
    for (; number != 0; number >>= 1)
        ++bits;
    return bits;
}

} // namespace

bool ElementwiseLoop::add(int axes, const long long *lengths, const long long *strides, long long itemsize) {
    if (axes > most_axes || inputs_ == most_inputs)
        return false;
    Input &input = given_[inputs_++];
    input.axes = axes;
    input.itemsize = itemsize;
    std::copy(lengths, lengths + axes, input.lengths);
    std::copy(strides, strides + axes, input.strides);
    if (axes > axes_) {
        std::copy_backward(lengths_, lengths_ + axes_, lengths_ + axes);
        std::fill(lengths_, lengths_ + axes - axes_, 1);
        axes_ = axes;
    }
    for (int axis = 0; axis < axes; ++axis) {
        long long &length = lengths_[axes_ - axes + axis];
        if (length == 1)
            length = lengths[axis];
        else if (lengths[axis] != 1 && lengths[axis] != length)
            return false;
    }
    return true;
}

bool ElementwiseLoop::plan() {
    size_ = 1;
    for (int axis = 0; axis < axes_; ++axis)
        if (__builtin_mul_overflow(size_, lengths_[axis], &size_))
            return false;
    broadcast_strides();
    sort();
    return merge();
}

void ElementwiseLoop::broadcast_strides() {
    for (int place = 0; place < inputs_; ++place) {
        const Input &input = given_[place];
        const int missing = axes_ - input.axes;
        std::fill(strides_[place], strides_[place] + missing, 0);
        for (int axis = 0; axis < input.axes; ++axis) {
            const bool is_broadcast = input.lengths[axis] == 1 && lengths_[missing + axis] != 1;
            strides_[place][missing + axis] = is_broadcast ? 0 : input.strides[axis];
        }
    }
}

void ElementwiseLoop::sort() {
    for (int place = 0; place < axes_; ++place)
        order_[place] = axes_ - 1 - place;
    for (int place = 1; place < axes_; ++place) {
        int moving = place;
        for (int before = place - 1; before >= 0; --before) {
            const long long comparison = compared(order_[before], order_[moving]);
            if (comparison > 0) {
                std::swap(order_[before], order_[moving]);
                moving = before;
            } else if (comparison < 0) {
                break;
            }
        }
    }
}

long long ElementwiseLoop::compared(int first, int second) const {
    for (int place = 0; place < inputs_; ++place) {
        const long long one = std::llabs(strides_[place][first]), other = std::llabs(strides_[place][second]);
        if (one == 0 || other == 0)
            continue;
        if (one != other)
            return one - other;
        if (lengths_[first] > lengths_[second])
            return 1;
    }
    return 0;
}

bool ElementwiseLoop::merge() {
    long long lengths[most_axes], steps[most_inputs][most_axes], reach[most_inputs] = {};
    int merged = 0;
    for (int place = 0; place < axes_; ++place) {
        const int axis = order_[place];
        if (lengths_[axis] == 1)
            continue;
        bool is_even = merged != 0;
        for (int input = 0; is_even && input < inputs_; ++input)
            is_even = strides_[input][axis] == lengths[merged - 1] * steps[input][merged - 1];
        for (int input = 0; input < inputs_; ++input) {
            reach[input] += std::llabs(strides_[input][axis]) * (lengths_[axis] - 1);
            if (!is_even)
                steps[input][merged] = strides_[input][axis];
        }
        if (is_even)
            lengths[merged - 1] *= lengths_[axis];
        else
            lengths[merged++] = lengths_[axis];
    }
    if (std::max(size_, *std::max_element(reach, reach + inputs_)) >= half_range)
        return false;
    layout_.axes = merged;
    for (int axis = 0; axis < merged; ++axis) {
        const auto length = static_cast<std::uint32_t>(lengths[axis]);
        const int shift = bits_of(length - 1);
        layout_.lengths[axis] = length;
        layout_.shifts[axis] = static_cast<std::uint32_t>(shift);
        if (length != 0)
            layout_.multipliers[axis] =
                static_cast<std::uint32_t>(((1ULL << 32) * ((1ULL << shift) - length)) / length + 1);
        for (int input = 0; input < inputs_; ++input)
            layout_.strides[input][axis] = static_cast<std::int32_t>(steps[input][axis]);
    }
    return true;
}

int ElementwiseLoop::place_of(int axis) const {
    const int *const found = std::find(order_, order_ + axes_, axis);
    return axes_ - 1 - static_cast<int>(found - order_);
}

bool ElementwiseLoop::is_transposed() const {
    for (int place = 0; place < axes_; ++place)
        if (order_[place] != axes_ - 1 - place)
            return true;
    return false;
}

bool ElementwiseLoop::is_contiguous() const {
    if (size_ <= 1)
        return true;
    if (layout_.axes != 1)
        return false;
    for (int input = 0; input < inputs_; ++input)
        if (layout_.strides[input][0] != given_[input].itemsize)
            return false;
    return true;
}

} // namespace tcuda
