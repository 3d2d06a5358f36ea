// The kernels that a jiterator function has learned from the calls that Python computed.
#pragma once

#include <nanobind/nanobind.h>

#include <atomic>
#include <memory>
#include <vector>

#include "bindings/arrays/array_type.hpp"
#include "bindings/kernels/elementwise_scalar.hpp"
#include "bindings/scopes/current_stream.hpp"
#include "kernels/elementwise_kernels.hpp"

namespace tcuda {

// The kernels for inputs of certain dtypes and keyword arguments of certain kinds.
struct LearnedKernels {
    LearnedKernels(libcuda::Function contiguous, libcuda::Function strided, int device)
        : kernels(contiguous, strided, device) {}

    const ElementwiseKernels kernels;
    std::vector<nanobind::object> dtypes;
    std::vector<long long> itemsizes;
    bool is_one_dtype = true; // whether all inputs, and so the outputs, have the same dtype
    std::vector<ElementwiseScalar::Kind> kinds;
    nanobind::object result; // the dtype of the outputs, as the maker of arrays gets the dtype
    nanobind::object owner;  // keeps the kernels loaded
    const LearnedKernels *next = nullptr;
};

class ElementwiseState {
public:
    static constexpr std::size_t most_inputs = 8, most_outputs = 8, most_scalars = 16;

    // `names` and `defaults` describe the keyword arguments.
    ElementwiseState(nanobind::tuple names, nanobind::tuple defaults, std::size_t outputs);
    ~ElementwiseState();
    ElementwiseState(const ElementwiseState &) = delete;
    ElementwiseState &operator=(const ElementwiseState &) = delete;

    // Lets calls with these `dtypes` and `kinds` run without Python. `arrays` is the ArrayType of the inputs. The
    // functions belong to the current context, on `device`. At most `most_learned` calls are learned, so that the
    // search stays fast.
    void learn(nanobind::object arrays, nanobind::handle current_stream, nanobind::tuple dtypes, nanobind::tuple kinds,
               nanobind::object result, libcuda::Function contiguous, libcuda::Function strided, int device,
               nanobind::object owner);

    // Null if nothing was learned. The type of arrays and the current stream are known if this is not null.
    const LearnedKernels *first() const { return first_.load(std::memory_order_acquire); }
    const ArrayType &arrays() const { return *arrays_; }
    libcuda::Stream current_stream() const { return static_cast<libcuda::Stream>(current_stream_()); }

    const std::vector<ElementwiseScalar> &defaults() const { return defaults_; }
    std::size_t outputs() const { return outputs_; }

    // The place of the keyword argument `name`; -1 if no keyword argument has this name.
    std::ptrdiff_t place_of(PyObject *name) const {
        for (std::size_t place = 0; place < names_.size(); ++place)
            if (names_[place].ptr() == name) // Names in calls are interned.
                return static_cast<std::ptrdiff_t>(place);
        return -1;
    }

private:
    static constexpr int most_learned = 64; // the search is linear

    std::vector<nanobind::object> names_;
    std::vector<ElementwiseScalar> defaults_;
    const std::size_t outputs_;
    nanobind::object arrays_owner_;
    const ArrayType *arrays_ = nullptr;
    CurrentStream *current_stream_ = nullptr;
    int learned_ = 0;
    std::atomic<const LearnedKernels *> first_{nullptr};
};

} // namespace tcuda
