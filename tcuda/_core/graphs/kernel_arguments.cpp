#include "graphs/kernel_arguments.hpp"

#include "driver/status.hpp"

namespace tcuda {

const std::vector<KernelArguments::Piece> &KernelArguments::of(const libcuda::KernelNode &kernel) {
    pieces_.clear();
    if (kernel.parameters != nullptr) {
        const std::vector<std::size_t> &known = sizes(kernel);
        for (std::size_t i = 0; i < known.size(); ++i)
            pieces_.push_back({static_cast<const char *>(kernel.parameters[i]), known[i]});
    } else if (kernel.extra != nullptr) {
        Piece buffer{nullptr, 0};
        for (void **option = kernel.extra; *option != libcuda::launch_parameters_end; option += 2)
            if (*option == libcuda::launch_parameters_buffer)
                buffer.bytes = static_cast<const char *>(option[1]);
            else
                buffer.size = *static_cast<const std::size_t *>(option[1]);
        pieces_.push_back(buffer);
    }
    return pieces_;
}

const std::vector<std::size_t> &KernelArguments::sizes(const libcuda::KernelNode &kernel) {
    // A node names its kernel by one of these two handles.
    const bool by_function = kernel.function != 0;
    const auto [known, is_new] = sizes_.try_emplace(by_function ? kernel.function : kernel.kernel);
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
