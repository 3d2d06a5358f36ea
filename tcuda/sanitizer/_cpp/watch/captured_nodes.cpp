#include "sanitizer/_cpp/watch/captured_nodes.hpp"

namespace tcuda::watch {

void CapturedNodes::add(libcuda::Graph graph, libcuda::CaptureId capture, libcuda::GraphNode node, Known captured) {
    const std::lock_guard lock(mutex_);
    auto known = graphs_.find(graph);
    if (known == graphs_.end()) {
        if (graphs_.size() >= most_graphs) {
            const auto oldest = by_age_.begin();
            forget_nodes_of(graphs_[oldest->second]);
            graphs_.erase(oldest->second);
            by_age_.erase(oldest);
        }
        known = graphs_.emplace(graph, Graph{capture, ++last_, {}}).first;
        by_age_.emplace(last_, graph);
    }
    Graph &of = known->second;
    if (of.capture != capture) {
        forget_nodes_of(of);
        of.capture = capture;
    }
    if (nodes_.emplace(node, std::move(captured)).second)
        of.nodes.push_back(node);
}

CapturedNodes::Known CapturedNodes::find(libcuda::GraphNode node) {
    const std::lock_guard lock(mutex_);
    const auto known = nodes_.find(node);
    return known == nodes_.end() ? nullptr : known->second;
}

libcuda::CaptureId CapturedNodes::capture_of(libcuda::Graph graph) {
    const std::lock_guard lock(mutex_);
    const auto known = graphs_.find(graph);
    return known == graphs_.end() ? 0 : known->second.capture;
}

std::vector<std::pair<libcuda::GraphNode, CapturedNodes::Known>> CapturedNodes::nodes_of(libcuda::Graph graph) {
    const std::lock_guard lock(mutex_);
    std::vector<std::pair<libcuda::GraphNode, Known>> found;
    const auto known = graphs_.find(graph);
    if (known == graphs_.end())
        return found;
    for (const libcuda::GraphNode node : known->second.nodes) {
        const auto captured = nodes_.find(node);
        if (captured != nodes_.end())
            found.emplace_back(*captured);
    }
    return found;
}

void CapturedNodes::forget_node(libcuda::GraphNode node) {
    const std::lock_guard lock(mutex_);
    nodes_.erase(node);
}

void CapturedNodes::forget(libcuda::Graph graph) {
    const std::lock_guard lock(mutex_);
    const auto known = graphs_.find(graph);
    if (known == graphs_.end())
        return;
    forget_nodes_of(known->second);
    by_age_.erase(known->second.number);
    graphs_.erase(known);
}

std::size_t CapturedNodes::size() {
    const std::lock_guard lock(mutex_);
    return nodes_.size();
}

void CapturedNodes::forget_nodes_of(Graph &graph) {
    for (const libcuda::GraphNode node : graph.nodes)
        nodes_.erase(node);
    graph.nodes.clear();
}

} // namespace tcuda::watch
