// Reports CUDA graphs to a race detector.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <utility>
#include <vector>

#include "sanitizer/_cpp/order/race_detector.hpp"
#include "sanitizer/_cpp/watch/captured_nodes.hpp"
#include "sanitizer/_cpp/watch/graph_content.hpp"
#include "sanitizer/_cpp/watch/kernel_questions.hpp"
#include "sanitizer/_cpp/watch/launch_uses.hpp"
#include "sanitizer/_cpp/watch/watched_graphs.hpp"

namespace tcuda::watch {

// A node that was captured has the uses that its operation had then, with the notes of that time. The uses of other
// nodes are read from their parameters when the graph is instantiated.
//
// Any thread may call any function. No mutex is held while the driver is called. Each executable graph has a mutex,
// under which the detector is called, so that launches and updates of one executable graph come one after another.
//
// An executable graph from before the watch is an operation without known accesses.
class GraphWatch final : public WatchedGraphs {
public:
    // All of these must outlive the watch.
    GraphWatch(races::RaceDetector &detector, LaunchUses &launches, const GraphQuestions &questions);
    ~GraphWatch() override;
    GraphWatch(const GraphWatch &) = delete;
    GraphWatch &operator=(const GraphWatch &) = delete;

    // Captures. An event that a capturing stream records or waits for makes an edge, which is read from the graph.
    void captured(const WatchedStream &stream, const NamedOperation &operation, StackId stack) override;
    void launch_captured(libcuda::GraphExec executable, const WatchedStream &stream, StackId stack) override;

    // Graphs
    void cloned(libcuda::Graph clone, libcuda::Graph original) override;
    void child_added(libcuda::GraphNode node, libcuda::Graph graph, libcuda::Graph child) override;
    void conditional_added(libcuda::GraphNode node, libcuda::Graph graph, std::vector<libcuda::Graph> bodies) override;
    void node_changed(libcuda::GraphNode node) override { captured_.forget_node(node); }
    void node_about_to_be_destroyed(libcuda::GraphNode node) override { captured_.forget_node(node); }
    void graph_about_to_be_destroyed(libcuda::Graph graph) override;

    // Executable graphs
    void instantiated(libcuda::GraphExec executable, libcuda::Graph graph) override;
    void updated(libcuda::GraphExec executable, libcuda::Graph graph) override;
    void node_set(libcuda::GraphExec executable, libcuda::GraphNode node) override; // to something unknown
    void kernel_node_set(libcuda::GraphExec, libcuda::GraphNode, const libcuda::KernelNode &) override;
    void memcpy_node_set(libcuda::GraphExec, libcuda::GraphNode, const libcuda::MemcpyNode &) override;
    void memset_node_set(libcuda::GraphExec, libcuda::GraphNode, const libcuda::MemsetNode &) override;
    void child_node_set(libcuda::GraphExec, libcuda::GraphNode, libcuda::Graph child) override;
    void event_node_set(libcuda::GraphExec, libcuda::GraphNode, libcuda::Event) override;
    void enabled(libcuda::GraphExec, libcuda::GraphNode, bool enabled) override;
    bool may_call_host(libcuda::GraphExec) override;
    Races launched(libcuda::GraphExec, const WatchedStream &, StackId) override;
    void executable_about_to_be_destroyed(libcuda::GraphExec executable) override;

    struct Sizes {
        std::size_t executables, captured_nodes;
    };
    Sizes sizes();

private:
    class Executable;

    void remember(const WatchedStream &stream, const NamedOperation &operation, StackId stack,
                  std::shared_ptr<const GraphContent> child);
    GraphContent read(libcuda::Graph graph);
    void put(libcuda::GraphExec executable, std::shared_ptr<Executable> known);
    std::shared_ptr<Executable> find(libcuda::GraphExec executable);

    races::RaceDetector &detector_;
    LaunchUses &launches_;
    const GraphQuestions &questions_;
    CapturedNodes captured_;
    std::mutex mutex_;
    std::unordered_map<libcuda::GraphExec, std::shared_ptr<Executable>> executables_;
};

} // namespace tcuda::watch
