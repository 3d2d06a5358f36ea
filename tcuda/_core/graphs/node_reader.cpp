#include "graphs/node_reader.hpp"

#include <stdexcept>
#include <unordered_map>

#include "driver/status.hpp"

namespace tcuda {
namespace {

const libcuda::GraphNumberCalls *numbers_of_driver() {
    try {
        return &libcuda::calls<libcuda::GraphNumberCalls>();
    } catch (const std::runtime_error &) {
        return nullptr;
    }
}

} // namespace

NodeReader::NodeReader()
    : graphs_(libcuda::calls<libcuda::GraphCalls>()), nodes_(libcuda::calls<libcuda::GraphNodeCalls>()),
      numbers_(numbers_of_driver()) {}

int NodeReader::read(libcuda::Graph graph, std::vector<NodeFacts> *nodes) const {
    std::size_t count = 0;
    if (const int status = graphs_.nodes(graph, nullptr, &count))
        return status;
    std::vector<libcuda::GraphNode> handles(count);
    if (const int status = count == 0 ? success : graphs_.nodes(graph, handles.data(), &count))
        return status;
    std::unordered_map<libcuda::GraphNode, std::size_t> places;
    nodes->assign(count, {});
    for (std::size_t place = 0; place < count; ++place) {
        places.emplace(handles[place], place);
        if (const int status = read_node(handles[place], &(*nodes)[place]))
            return status;
    }
    std::size_t edges = 0;
    if (const int status = nodes_.edges(graph, nullptr, nullptr, nullptr, &edges))
        return status;
    if (edges == 0)
        return success;
    std::vector<libcuda::GraphNode> from(edges), to(edges);
    std::vector<libcuda::EdgeData> data(edges);
    if (const int status = nodes_.edges(graph, from.data(), to.data(), data.data(), &edges))
        return status;
    for (std::size_t edge = 0; edge < edges; ++edge)
        (*nodes)[places.at(to[edge])].before.push_back(places.at(from[edge]));
    return success;
}

int NodeReader::number_of(libcuda::GraphExec executable, std::uint64_t *number) const {
    unsigned found = 0;
    const int status = numbers_ == nullptr ? success : numbers_->executable(executable, &found);
    *number = found;
    return status;
}

int NodeReader::read_node(libcuda::GraphNode node, NodeFacts *facts) const {
    if (const int status = graphs_.node_type(node, &facts->type))
        return status;
    unsigned long long number = 0;
    if (const int status = numbers_ == nullptr ? success : numbers_->node(node, &number))
        return status;
    facts->number = number;
    if (facts->type == libcuda::node_type_record)
        return nodes_.recorded_event(node, &facts->event);
    if (facts->type == libcuda::node_type_wait)
        return nodes_.awaited_event(node, &facts->event);
    libcuda::KernelNode kernel{};
    if (facts->type == libcuda::node_type_kernel && graphs_.kernel_node(node, &kernel) == success)
        facts->kernel = name_of(kernel);
    return success;
}

std::string NodeReader::name_of(const libcuda::KernelNode &kernel) const {
    const char *name = nullptr;
    const int status =
        kernel.function != 0 ? nodes_.function_name(&name, kernel.function) : nodes_.kernel_name(&name, kernel.kernel);
    return status == success && name != nullptr ? name : "";
}

} // namespace tcuda
