#include "graphs/graph_changes.hpp"

#include <algorithm>

#include "driver/relaxed_captures.hpp"
#include "driver/status.hpp"
#include "graphs/graph_mover.hpp"

namespace tcuda {
namespace {

int nodes_of(const libcuda::GraphCalls &graphs, libcuda::Graph graph, std::vector<libcuda::GraphNode> *nodes) {
    std::size_t count = 0;
    if (const int status = graphs.nodes(graph, nullptr, &count))
        return status;
    nodes->resize(count);
    return count == 0 ? success : graphs.nodes(graph, nodes->data(), &count);
}

} // namespace

GraphChanges::GraphChanges()
    : captures_(libcuda::calls<libcuda::CaptureCalls>()), graphs_(libcuda::calls<libcuda::GraphCalls>()),
      changes_(libcuda::calls<libcuda::GraphChangeCalls>()) {}

int GraphChanges::update(libcuda::GraphExec exec, libcuda::Graph graph, Reason *reason) const {
    const RelaxedCaptures relaxed(captures_);
    libcuda::UpdateResult result{};
    const int status = changes_.update(exec, graph, &result);
    reason->result = result.result;
    if (status == success || result.node == 0)
        return status;
    std::vector<libcuda::GraphNode> nodes;
    if (nodes_of(graphs_, graph, &nodes) == success) {
        const auto found = std::find(nodes.begin(), nodes.end(), result.node);
        reason->node = found == nodes.end() ? -1 : found - nodes.begin();
    }
    return status;
}

int GraphChanges::move(const std::vector<libcuda::Graph> &graphs, libcuda::GraphExec exec, const AddressMove &move,
                       Moved *moved) const {
    GraphMover mover(graphs_, changes_, move);
    for (const libcuda::Graph graph : graphs)
        if (const int status = mover.read(graph))
            return status;
    moved->nodes = mover.count();
    moved->doubtful = mover.doubtful();
    moved->addresses = mover.addresses();
    if (moved->nodes == 0 || moved->doubtful >= 0)
        return success;
    if (const int status = mover.apply())
        return status;
    const int status = exec == 0 ? success : update(exec, graphs.front(), &moved->reason);
    if (status != success)
        mover.undo();
    return status;
}

int GraphChanges::set_enabled(libcuda::GraphExec exec, libcuda::Graph graph, std::size_t place, bool enabled) const {
    libcuda::GraphNode node = 0;
    const int status = node_at(graph, place, &node);
    return status != success ? status : changes_.set_enabled(exec, node, enabled ? 1 : 0);
}

int GraphChanges::is_enabled(libcuda::GraphExec exec, libcuda::Graph graph, std::size_t place, bool *enabled) const {
    libcuda::GraphNode node = 0;
    if (const int status = node_at(graph, place, &node))
        return status;
    unsigned state = 0;
    const int status = changes_.get_enabled(exec, node, &state);
    *enabled = state != 0;
    return status;
}

int GraphChanges::node_at(libcuda::Graph graph, std::size_t place, libcuda::GraphNode *node) const {
    std::vector<libcuda::GraphNode> nodes;
    if (const int status = nodes_of(graphs_, graph, &nodes))
        return status;
    if (place >= nodes.size())
        return invalid_value;
    *node = nodes[place];
    return success;
}

} // namespace tcuda
