#pragma once

#include <cstddef>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "sanitizer/_cpp/order/race_detector.hpp"
#include "sanitizer/_cpp/watch/captured_nodes.hpp"
#include "sanitizer/_cpp/watch/graph_content.hpp"
#include "sanitizer/_cpp/watch/kernel_questions.hpp"
#include "sanitizer/_cpp/watch/launch_uses.hpp"

namespace tcuda::watch {

// Reads graphs with the functions of the driver. The reader prefers what was known of a node at its capture.
class ContentReader {
public:
    ContentReader(const GraphQuestions &questions, LaunchUses &launches, CapturedNodes &captured)
        : questions_(questions), launches_(launches), captured_(captured) {}

    // Nodes that the driver does not report are left out.
    GraphContent read(libcuda::Graph graph);

private:
    using Places = std::vector<std::size_t>;
    using Edge = std::pair<libcuda::GraphNode, libcuda::GraphNode>; // from, to
    struct Handles {
        std::vector<libcuda::GraphNode> nodes;
        std::vector<Places> before; // for each node, the nodes that it depends on
    };

    Handles handles_of(libcuda::Graph graph) const;
    std::optional<std::vector<Edge>> edges_of(libcuda::Graph graph) const; // nothing if the driver does not tell
    GraphContent::Node node_of(libcuda::GraphNode handle, int type);
    GraphContent child_of(libcuda::GraphNode handle);
    // Adds the nodes of the bodies of a conditional node, which come after `before`, and returns the places of the
    // nodes that come last. Only the device knows whether the bodies run, so their uses are possible ones.
    Places add_bodies(GraphContent *content, libcuda::GraphNode handle, Places before);
    // Adds the nodes of a child graph, and returns the places of the nodes that come last.
    static Places add_child(GraphContent *content, GraphContent child, libcuda::GraphNode handle, const Places &before);

    const GraphQuestions &questions_;
    LaunchUses &launches_;
    CapturedNodes &captured_;
    int depth_ = 0; // of the child graph that is read
};

Launch launch_of(const libcuda::KernelNode &kernel);

// Add the uses of a copy, and of a fill.
void read_copy(const libcuda::MemcpyNode &copy, std::vector<races::RaceDetector::NamedUse> *uses);
void read_fill(const libcuda::MemsetNode &fill, std::vector<races::RaceDetector::NamedUse> *uses);
constexpr std::string_view copy_name = "memcpy", fill_name = "memset";

} // namespace tcuda::watch
