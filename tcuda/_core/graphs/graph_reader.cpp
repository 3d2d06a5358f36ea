#include "graphs/graph_reader.hpp"

#include <cstring>

#include "driver/status.hpp"

namespace tcuda {

int GraphReader::read(libcuda::Graph graph, std::size_t *count) {
    std::size_t nodes = 0;
    if (const int status = graphs_.nodes(graph, nullptr, &nodes))
        return status;
    *count = nodes;
    std::vector<libcuda::GraphNode> handles(nodes);
    if (const int status = nodes == 0 ? success : graphs_.nodes(graph, handles.data(), &nodes))
        return status;
    for (const libcuda::GraphNode node : handles)
        if (const int status = read_node(node))
            return status;
    return success;
}

int GraphReader::read_node(libcuda::GraphNode node) {
    // Nearly every node is a kernel, so the type of the node is asked for only if this fails.
    libcuda::KernelNode parameters{};
    if (graphs_.kernel_node(node, &parameters) == success) {
        read_kernel(parameters);
        return success;
    }
    int type = 0;
    if (const int status = graphs_.node_type(node, &type))
        return status;
    switch (type) {
    case libcuda::node_type_memcpy: {
        libcuda::MemcpyNode copy{};
        const int status = graphs_.memcpy_node(node, &copy);
        for (const libcuda::MemcpyEnd &end : {copy.source, copy.target})
            add(end.memory_type == libcuda::memory_type_host ? end.host : end.device);
        return status;
    }
    case libcuda::node_type_memset: {
        libcuda::MemsetNode fill{};
        const int status = graphs_.memset_node(node, &fill);
        add(fill.target);
        return status;
    }
    case libcuda::node_type_graph: {
        libcuda::Graph graph = 0;
        std::size_t nodes;
        const int status = graphs_.child_graph(node, &graph);
        return status != success ? status : read(graph, &nodes);
    }
    default:
        return success;
    }
}

void GraphReader::read_kernel(const libcuda::KernelNode &kernel) {
    for (const KernelArguments::Piece &piece : arguments_.of(kernel))
        // Pointers are aligned to their size, in structures too.
        for (std::size_t at = 0; at + sizeof(std::uintptr_t) <= piece.size; at += sizeof(std::uintptr_t)) {
            std::uintptr_t word;
            std::memcpy(&word, piece.bytes + at, sizeof word);
            add(word);
        }
}

void GraphReader::add(std::uintptr_t word) {
    if (word >= libcuda::least_address && (addresses_.empty() || addresses_.back() != word))
        addresses_.push_back(word);
}

} // namespace tcuda
