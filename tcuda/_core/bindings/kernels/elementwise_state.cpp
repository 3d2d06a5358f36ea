#include "bindings/kernels/elementwise_state.hpp"

namespace nb = nanobind;

namespace tcuda {

ElementwiseState::ElementwiseState(nb::tuple names, nb::tuple defaults, std::size_t outputs) : outputs_(outputs) {
    if (outputs == 0 || outputs > most_outputs || names.size() != defaults.size())
        throw nb::value_error("a function has 1 to 8 outputs, and a default for each keyword argument");
    for (nb::handle name : names)
        names_.push_back(nb::borrow(name));
    for (nb::handle value : defaults) {
        ElementwiseScalar scalar;
        if (!scalar.read(value.ptr()))
            throw nb::type_error("a default is a bool, an int of 64 bits, a float or a complex number");
        defaults_.push_back(scalar);
    }
}

ElementwiseState::~ElementwiseState() {
    const LearnedKernels *learned = first();
    while (learned != nullptr) {
        const LearnedKernels *const next = learned->next;
        delete learned;
        learned = next;
    }
}

void ElementwiseState::learn(nb::object arrays, nb::handle current_stream, nb::tuple dtypes, nb::tuple kinds,
                             nb::object result, libcuda::Function contiguous, libcuda::Function strided, int device,
                             nb::object owner) {
    if (kinds.size() != defaults_.size())
        throw nb::value_error("learn() takes a kind for each keyword argument");
    if (learned_ == most_learned || defaults_.size() > most_scalars || dtypes.size() > most_inputs)
        return;
    auto made = std::make_unique<LearnedKernels>(contiguous, strided, device);
    for (nb::handle dtype : dtypes) {
        made->dtypes.push_back(nb::borrow(dtype));
        made->itemsizes.push_back(nb::cast<long long>(dtype.attr("itemsize")));
        made->is_one_dtype = made->is_one_dtype && dtype.is(dtypes[0]);
    }
    for (nb::handle kind : kinds)
        made->kinds.push_back(static_cast<ElementwiseScalar::Kind>(nb::cast<int>(kind)));
    made->result = std::move(result);
    made->owner = std::move(owner);
    if (arrays_ == nullptr) {
        current_stream_ = current_stream_in(current_stream);
        arrays_ = nb::cast<const ArrayType *>(arrays);
        arrays_owner_ = std::move(arrays);
    }
    ++learned_;
    made->next = first();
    first_.store(made.release(), std::memory_order_release);
}

} // namespace tcuda
