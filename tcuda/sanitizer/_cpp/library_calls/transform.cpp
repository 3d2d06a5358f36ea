#include "sanitizer/_cpp/library_calls/transform.hpp"

#include <vector>

namespace tcuda::library_calls {
namespace {

// One side of a transform.
struct Side {
    bool complex = false;
    std::size_t item = 0;
    std::vector<std::int64_t> embedding; // empty: the data are contiguous
    std::int64_t stride = 1, distance = 0;
};

std::optional<Side> side_of(std::int64_t data_type) {
    Side side;
    switch (data_type) {
    case 0:
    case 1:
    case 2:
    case 14:
        break;                     // float, double, half, bfloat16
    case 4:
    case 5:
    case 6:
    case 15:
        side.complex = true;
        break; // the complex types of these
    default:
        return {};
    }
    side.item = size_of_data_type(data_type);
    return side;
}

// The types of cufftType: the two sides as types of cudaDataType.
bool types_of(std::int64_t type, std::int64_t &input, std::int64_t &output) {
    switch (type) {
    case 0x2a:
        input = 0, output = 4;
        return true; // R2C
    case 0x2c:
        input = 4, output = 0;
        return true; // C2R
    case 0x29:
        input = 4, output = 4;
        return true; // C2C
    case 0x6a:
        input = 1, output = 5;
        return true; // D2Z
    case 0x6c:
        input = 5, output = 1;
        return true; // Z2D
    case 0x69:
        input = 5, output = 5;
        return true; // Z2Z
    default:
        return false;
    }
}

// The items of one side, the outermost dimension first. A side of complex numbers whose other side is real has the
// half of the last dimension.
std::vector<races::Dimension> shape_of(const Side &side, const Side &other, const std::vector<std::int64_t> &lengths,
                                       std::int64_t batches) {
    std::vector<std::int64_t> counts = lengths;
    if (side.complex && !other.complex)
        counts.back() = counts.back() / 2 + 1;
    const auto item = std::int64_t(side.item);
    std::vector<races::Dimension> shape;
    if (side.embedding.empty()) {
        std::int64_t count = batches;
        for (const std::int64_t one : counts)
            count *= one;
        return {{count, item}};
    }
    shape.push_back({batches, side.distance * item});
    std::int64_t stride = side.stride * item;
    std::vector<races::Dimension> inner(counts.size());
    for (std::size_t axis = counts.size(); axis-- > 0;) {
        inner[axis] = {counts[axis], stride};
        stride *= side.embedding[axis];
    }
    shape.insert(shape.end(), inner.begin(), inner.end());
    return shape;
}

template <class Integer> std::vector<std::int64_t> list_of(std::uint64_t address, std::size_t count) {
    const auto *numbers = reinterpret_cast<const Integer *>(address);
    return numbers ? std::vector<std::int64_t>(numbers, numbers + count) : std::vector<std::int64_t>();
}

std::int64_t narrow(std::uint64_t value) { return std::int32_t(std::uint32_t(value)); }

} // namespace

std::optional<PlannedTransform> transform_of(Extra call, Values values) {
    std::uint64_t work_size = 0; // where the call writes the size of the work area
    std::int64_t input_type = -1, output_type = -1, batches = 1;
    std::vector<std::int64_t> lengths, input_embedding, output_embedding;
    std::int64_t strides[2] = {1, 1}, distances[2] = {0, 0};
    if (call == Extra::fft_plan_1d) {
        lengths = {narrow(values[1])};
        if (!types_of(narrow(values[2]), input_type, output_type))
            return {};
        batches = narrow(values[3]);
        work_size = values[4];
    } else {
        const std::int64_t rank = narrow(values[1]);
        if (rank < 1 || rank > 3)
            return {};
        const auto count = std::size_t(rank);
        if (call == Extra::fft_plan_many) {
            lengths = list_of<std::int32_t>(values[2], count);
            input_embedding = list_of<std::int32_t>(values[3], count);
            output_embedding = list_of<std::int32_t>(values[6], count);
            strides[0] = narrow(values[4]), distances[0] = narrow(values[5]);
            strides[1] = narrow(values[7]), distances[1] = narrow(values[8]);
            if (!types_of(narrow(values[9]), input_type, output_type))
                return {};
            batches = narrow(values[10]);
            work_size = values[11];
        } else {
            lengths = list_of<std::int64_t>(values[2], count);
            input_embedding = list_of<std::int64_t>(values[3], count);
            output_embedding = list_of<std::int64_t>(values[7], count);
            strides[0] = std::int64_t(values[4]), distances[0] = std::int64_t(values[5]);
            strides[1] = std::int64_t(values[8]), distances[1] = std::int64_t(values[9]);
            input_type = narrow(values[6]), output_type = narrow(values[10]);
            batches = std::int64_t(values[11]);
            work_size = values[12];
        }
    }
    std::optional<Side> input = side_of(input_type), output = side_of(output_type);
    if (!input || !output || lengths.empty() || batches < 1)
        return {};
    for (const std::int64_t length : lengths)
        if (length < 1)
            return {};
    // cuFFT takes both sides as contiguous if one of the embeddings is missing.
    if (!input_embedding.empty() && !output_embedding.empty()) {
        input->embedding = std::move(input_embedding), output->embedding = std::move(output_embedding);
        input->stride = strides[0], input->distance = distances[0];
        output->stride = strides[1], output->distance = distances[1];
    }
    PlannedTransform made;
    made.input_item = input->item;
    made.output_item = output->item;
    made.input = shape_of(*input, *output, lengths, batches);
    made.output = shape_of(*output, *input, lengths, batches);
    if (work_size != 0)
        made.work_area = *reinterpret_cast<const std::size_t *>(work_size);
    made.into_input = input->complex && !output->complex;
    return made;
}

} // namespace tcuda::library_calls
