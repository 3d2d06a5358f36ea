#include "graphs/kernel_parameters.hpp"

#include "driver/status.hpp"

namespace tcuda {

const std::vector<std::size_t> &KernelParameters::sizes(const libcuda::KernelNode &kernel) {
    // A node names its kernel by one of these two handles.
    const bool by_function = kernel.function != 0;
    const auto [known, is_new] = known_.try_emplace(by_function ? kernel.function : kernel.kernel);
    std::vector<std::size_t> &sizes = known->second;
    if (is_new) {
        std::size_t offset, size;
        while ((by_function ? graphs_.parameter_info(kernel.function, sizes.size(), &offset, &size)
                            : graphs_.kernel_parameter_info(kernel.kernel, sizes.size(), &offset, &size)) == success)
            sizes.push_back(size);
    }
    return sizes;
}

} // namespace tcuda
