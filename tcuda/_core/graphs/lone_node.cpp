#include "graphs/lone_node.hpp"

#include "driver/status.hpp"
#include "graphs/graph_reader.hpp"

namespace tcuda {

LoneNodes::LoneNodes()
    : contexts_(libcuda::calls<libcuda::ContextCalls>()), graphs_(libcuda::calls<libcuda::GraphCalls>()),
      nodes_(libcuda::calls<libcuda::GraphNodeCalls>()), lone_(libcuda::calls<libcuda::LoneNodeCalls>()) {}

int LoneNodes::copy(libcuda::Graph graph, std::size_t place, libcuda::Graph *alone) const {
    libcuda::GraphNode node = 0;
    if (const int status = node_at(graph, place, &node))
        return status;
    if (const int status = lone_.create(alone, 0))
        return status;
    const int status = add_copy(node, *alone);
    if (status != success) {
        graphs_.destroy(*alone);
        *alone = 0;
    }
    return status;
}

int LoneNodes::child(libcuda::Graph graph, std::size_t place, libcuda::Graph *child) const {
    libcuda::GraphNode node = 0;
    const int status = node_at(graph, place, &node);
    return status != success ? status : graphs_.child_graph(node, child);
}

int LoneNodes::addresses(libcuda::Graph graph, std::vector<std::uintptr_t> *addresses) const {
    std::size_t count = 0;
    return GraphReader(graphs_, *addresses).read(graph, &count);
}

int LoneNodes::node_at(libcuda::Graph graph, std::size_t place, libcuda::GraphNode *node) const {
    std::size_t count = 0;
    if (const int status = graphs_.nodes(graph, nullptr, &count))
        return status;
    if (place >= count)
        return invalid_value;
    std::vector<libcuda::GraphNode> nodes(count);
    const int status = graphs_.nodes(graph, nodes.data(), &count);
    *node = nodes[place];
    return status;
}

int LoneNodes::add_copy(libcuda::GraphNode node, libcuda::Graph alone) const {
    int type = 0;
    if (const int status = graphs_.node_type(node, &type))
        return status;
    libcuda::Context context = 0;
    if (const int status = contexts_.get_current(&context))
        return status;
    libcuda::GraphNode made = 0;
    int status;
    switch (type) {
    case libcuda::node_type_kernel:
        return add_kernel(node, alone);
    case libcuda::node_type_memcpy: {
        libcuda::MemcpyNode copy{};
        status = graphs_.memcpy_node(node, &copy);
        return status != success ? status : lone_.add_memcpy(&made, alone, nullptr, 0, &copy, context);
    }
    case libcuda::node_type_memset: {
        libcuda::MemsetNode fill{};
        status = graphs_.memset_node(node, &fill);
        return status != success ? status : lone_.add_memset(&made, alone, nullptr, 0, &fill, context);
    }
    case libcuda::node_type_host: {
        libcuda::HostNode function{};
        status = lone_.host_node(node, &function);
        return status != success ? status : lone_.add_host(&made, alone, nullptr, 0, &function);
    }
    case libcuda::node_type_empty:
        return lone_.add_empty(&made, alone, nullptr, 0);
    case libcuda::node_type_record: {
        libcuda::Event event = 0;
        status = nodes_.recorded_event(node, &event);
        return status != success ? status : lone_.add_record(&made, alone, nullptr, 0, event);
    }
    case libcuda::node_type_wait: {
        libcuda::Event event = 0;
        status = nodes_.awaited_event(node, &event);
        return status != success ? status : lone_.add_wait(&made, alone, nullptr, 0, event);
    }
    default:
        return not_supported;
    }
}

int LoneNodes::add_kernel(libcuda::GraphNode node, libcuda::Graph alone) const {
    libcuda::KernelNode kernel{};
    libcuda::GraphNode made = 0;
    if (const int status = graphs_.kernel_node(node, &kernel))
        return status;
    if (const int status = graphs_.add_kernel_node(&made, alone, nullptr, 0, &kernel))
        return status;
    return lone_.copy_attributes(made, node); // such as the size of clusters
}

} // namespace tcuda
