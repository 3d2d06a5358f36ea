// The loop of a strided kernel: the axes of the outputs in the order of memory, merged where the strides of all inputs
// allow it. tcuda/jiterator/_plan.py has the same rules for the calls that the core does not compute.
#pragma once

#include <cstddef>
#include <cstdint>

namespace tcuda {

class ElementwiseLoop {
public:
    static constexpr int most_axes = 16, most_inputs = 8;

    // The parameter `layout` of the strided kernel: tcuda_Narrow in tcuda/jiterator/_source.py. A kernel with fewer
    // inputs reads fewer rows of strides.
    struct Layout {
        std::int32_t axes;
        std::uint32_t lengths[most_axes], multipliers[most_axes], shifts[most_axes];
        std::int32_t strides[most_inputs][most_axes];
    };

    // Adds an input. False if the input cannot be broadcast, or has too many axes.
    bool add(int axes, const long long *lengths, const long long *strides, long long itemsize);

    // Called after the last input. False if the strided kernel cannot compute the loop.
    bool plan();

    long long size() const { return size_; }
    int axes() const { return axes_; }
    // The length of an axis of the outputs as they are made, with their elements side by side.
    long long made(int axis) const { return lengths_[order_[axes_ - 1 - axis]]; }
    // The axis of an output as it is made that becomes `axis` of the output.
    int place_of(int axis) const;
    bool is_transposed() const;
    // Whether the elements of all inputs lie side by side, in the order of the outputs.
    bool is_contiguous() const;
    const Layout &layout() const { return layout_; }

private:
    void broadcast_strides();
    void sort();
    long long compared(int first, int second) const;
    bool merge();

    int inputs_ = 0, axes_ = 0;
    long long lengths_[most_axes], size_ = 1;
    struct Input {
        int axes;
        long long lengths[most_axes], strides[most_axes], itemsize;
    };
    Input given_[most_inputs];
    long long strides_[most_inputs][most_axes]; // along the axes of the outputs
    int order_[most_axes];                      // the axes from the smallest step to the largest
    Layout layout_;
};

} // namespace tcuda
