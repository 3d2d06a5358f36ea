#include "graphs/cuda_graphs.hpp"

#include <algorithm>
#include <cstring>
#include <unordered_map>

#include "driver/graph_symbols.hpp"

namespace tcuda {
namespace {

// Captures forbid this thread nothing while it lives.
class Relaxed {
public:
    explicit Relaxed(const GraphSymbols &driver) : driver_(driver) { driver_.exchange_capture_mode(&mode_); }
    ~Relaxed() { driver_.exchange_capture_mode(&mode_); }
    Relaxed(const Relaxed &) = delete;
    Relaxed &operator=(const Relaxed &) = delete;

private:
    const GraphSymbols &driver_;
    int mode_ = 2; // CU_STREAM_CAPTURE_MODE_RELAXED
};

// Reads the parameters of the nodes of a graph.
class Reader {
public:
    Reader(const GraphSymbols &driver, std::vector<std::uintptr_t> &addresses) : driver_(driver), addresses_(addresses) {}

    int read(std::uintptr_t graph, std::size_t *count) {
        std::size_t nodes = 0;
        if (const int status = driver_.graph_nodes(graph, nullptr, &nodes))
            return status;
        *count = nodes;
        std::vector<std::uintptr_t> handles(nodes);
        if (const int status = nodes == 0 ? 0 : driver_.graph_nodes(graph, handles.data(), &nodes))
            return status;
        for (const std::uintptr_t node : handles)
            if (const int status = read_node(node))
                return status;
        return 0;
    }

private:
    enum Type { memcpy = 1, memset = 2, child = 4 };
    static constexpr std::uintptr_t least = 1 << 16; // smaller ones are sizes, and no driver maps memory there

    int read_node(std::uintptr_t node) {
        KernelNode parameters{};
        if (driver_.kernel_node(node, &parameters) == 0) { // as nearly every node is
            read_kernel(parameters);
            return 0;
        }
        int type = 0;
        if (const int status = driver_.node_type(node, &type))
            return status;
        switch (type) {
        case memcpy: {
            MemcpyNode copy{};
            const int status = driver_.memcpy_node(node, &copy);
            add(copy.source.device);
            add(copy.target.device);
            return status;
        }
        case memset: {
            MemsetNode fill{};
            const int status = driver_.memset_node(node, &fill);
            add(fill.target);
            return status;
        }
        case child: {
            std::uintptr_t graph = 0;
            std::size_t nodes;
            const int status = driver_.child_graph(node, &graph);
            return status ? status : read(graph, &nodes);
        }
        default:
            return 0;
        }
    }

    void read_kernel(const KernelNode &kernel) {
        if (kernel.parameters == nullptr)
            return;
        const std::vector<std::size_t> &sizes = parameters(kernel.function);
        for (std::size_t i = 0; i < sizes.size(); ++i)
            // Pointers lie at multiples of their size, in structures too.
            for (std::size_t at = 0; at + sizeof(std::uintptr_t) <= sizes[i]; at += sizeof(std::uintptr_t)) {
                std::uintptr_t word;
                std::memcpy(&word, static_cast<const char *>(kernel.parameters[i]) + at, sizeof word);
                add(word);
            }
    }

    // Their sizes. For one graph only: a function may be unloaded, and another one loaded at its address.
    const std::vector<std::size_t> &parameters(std::uintptr_t function) {
        const auto [known, is_new] = parameters_.try_emplace(function);
        if (is_new) {
            std::size_t offset, size;
            while (driver_.parameter_info(function, known->second.size(), &offset, &size) == 0)
                known->second.push_back(size);
        }
        return known->second;
    }

    void add(std::uintptr_t address) {
        if (address >= least && (addresses_.empty() || addresses_.back() != address))
            addresses_.push_back(address);
    }

    const GraphSymbols &driver_;
    std::vector<std::uintptr_t> &addresses_;
    std::unordered_map<std::uintptr_t, std::vector<std::size_t>> parameters_;
};

} // namespace

CudaGraphs::CudaGraphs() : driver_(graph_symbols()) {}

int CudaGraphs::capture_info(std::uintptr_t stream, CaptureInfo *info) const {
    *info = {0, 0};
    const int status = driver_.capture_info(stream, &info->status, &info->id, nullptr, nullptr, nullptr);
    if (info->status == 0)
        info->id = 0;
    return status;
}

int CudaGraphs::instantiate(std::uintptr_t graph, std::uint64_t flags, std::uintptr_t *exec) const {
    const Relaxed relaxed(driver_);
    return driver_.instantiate(exec, graph, flags);
}

int CudaGraphs::destroy_exec(std::uintptr_t exec) const {
    const Relaxed relaxed(driver_);
    return driver_.destroy_exec(exec);
}

GraphLauncher::GraphLauncher(std::uintptr_t exec) : driver_(graph_symbols()), exec_(exec) {
    int devices = 0;
    if (driver_.device_count(&devices) != 0 || devices != 1)
        driver_.current_context(&context_);
}

int GraphLauncher::launch(std::uintptr_t stream) const {
    constexpr int invalid_context = 201, unsupported = 900;
    std::uintptr_t context = 0;
    if (context_ != 0 && (driver_.current_context(&context) != 0 || context != context_))
        return invalid_context;
    int capturing = 0;
    if (const int status = driver_.is_capturing(stream, &capturing))
        return status;
    return capturing != 0 ? unsupported : driver_.launch(exec_, stream);
}

int CudaGraphs::contents(std::uintptr_t graph, std::size_t *nodes, std::vector<std::uintptr_t> *addresses) const {
    const int status = Reader(driver_, *addresses).read(graph, nodes);
    std::sort(addresses->begin(), addresses->end());
    addresses->erase(std::unique(addresses->begin(), addresses->end()), addresses->end());
    return status;
}

} // namespace tcuda
