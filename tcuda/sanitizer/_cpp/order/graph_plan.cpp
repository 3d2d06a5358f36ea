#include "sanitizer/_cpp/order/graph_plan.hpp"

#include <algorithm>
#include <map>
#include <stdexcept>

namespace tcuda::races {

GraphPlan::GraphPlan(std::vector<GraphNode> nodes) {
    for (GraphNode &node : nodes) {
        std::map<std::size_t, Epoch> after;
        const std::size_t none = lengths_.size();
        std::size_t chain = none;
        for (const std::size_t place : node.dependencies) {
            if (place >= nodes_.size())
                throw std::out_of_range("a node of a graph may depend only on earlier nodes");
            const Node &other = nodes_[place];
            for (const auto &[known, last] : other.after)
                after[known] = std::max(after[known], last);
            after[other.chain] = std::max(after[other.chain], other.place);
            if (chain == none && other.place == lengths_[other.chain]) // the node continues the chain
                chain = other.chain;
        }
        if (chain == none)
            lengths_.push_back(0);
        after.erase(chain);
        nodes_.push_back({node.name, node.stack, std::move(node.uses), chain, ++lengths_[chain],
                          std::vector<std::pair<std::size_t, Epoch>>(after.begin(), after.end())});
    }
}

} // namespace tcuda::races
