#include "graphs/noted_nodes.hpp"

#include "driver/status.hpp"

namespace tcuda {

std::size_t NotedNodes::note(libcuda::Stream stream, std::uint64_t note) {
    int capture = libcuda::capture_status_none;
    libcuda::CaptureId id = 0;
    libcuda::Graph graph = 0;
    // Without the dependencies, the driver answers also if an edge has data.
    if (graphs_.capture_info(stream, &capture, &id, &graph, nullptr, nullptr) != success ||
        capture == libcuda::capture_status_none || capture == libcuda::capture_status_invalidated)
        return 0;
    std::size_t count = 0;
    std::size_t &known = counts_[graph];
    if (graphs_.nodes(graph, nullptr, &count) != success || count == known)
        return 0;
    std::vector<libcuda::GraphNode> nodes;
    if (nodes_of(graph, &nodes) != success)
        return 0;
    std::size_t fresh = 0;
    // The new nodes are the last ones with the drivers that are known.
    for (auto node = nodes.rbegin(); node != nodes.rend() && known + fresh < nodes.size(); ++node)
        fresh += notes_.emplace(*node, note).second ? 1 : 0;
    known += fresh;
    return fresh;
}

int NotedNodes::notes_of(libcuda::Graph graph, std::vector<std::uint64_t> *notes) const {
    std::vector<libcuda::GraphNode> nodes;
    const int status = nodes_of(graph, &nodes);
    for (const libcuda::GraphNode node : nodes) {
        const auto found = notes_.find(node);
        notes->push_back(found == notes_.end() ? 0 : found->second);
    }
    return status;
}

int NotedNodes::nodes_of(libcuda::Graph graph, std::vector<libcuda::GraphNode> *nodes) const {
    std::size_t count = 0;
    if (const int status = graphs_.nodes(graph, nullptr, &count))
        return status;
    nodes->resize(count);
    return count == 0 ? success : graphs_.nodes(graph, nodes->data(), &count);
}

} // namespace tcuda
