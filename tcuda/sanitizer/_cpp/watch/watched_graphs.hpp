// The graphs of the program: the interface between the watch and the reader of graphs.
#pragma once

#include <vector>

#include "driver/libcuda_types.hpp"
#include "sanitizer/_cpp/watch/launch_uses.hpp"

namespace tcuda::watch {

// A stream that the watch has met.
struct WatchedStream {
    int device = 0;
    Stream key = 0;    // as key_of() makes it
    Stream handle = 0; // for the driver
};

// Any thread may call any function. Each function is called after the driver has made the call, unless the name says
// otherwise. Found races are returned, and the watch delivers them.
class WatchedGraphs {
public:
    using Races = races::RaceDetector::Races;
    virtual ~WatchedGraphs() = default;

    // A kernel, a copy, a fill or another piece of work was added to a capture in which the stream takes part. The node
    // is the stream's last dependency (cuStreamGetCaptureInfo_v2).
    virtual void captured(const WatchedStream &, const NamedOperation &, StackId) = 0;
    // The launch of an executable graph was captured, as a child graph.
    virtual void launch_captured(libcuda::GraphExec, const WatchedStream &stream, StackId stack) {
        captured(stream, {"graph", {nullptr, 0}}, stack);
    }
    // The capture that the stream has begun is about to end.
    virtual void capture_ending(const WatchedStream &) {}

    virtual void cloned(libcuda::Graph /*clone*/, libcuda::Graph /*original*/) {}
    virtual void child_added(libcuda::GraphNode, libcuda::Graph /*graph of the node*/, libcuda::Graph /*child*/) {}
    // A conditional node was added, whose bodies are graphs of the node.
    virtual void conditional_added(libcuda::GraphNode, libcuda::Graph /*graph of the node*/,
                                   std::vector<libcuda::Graph> /*bodies*/) {}
    virtual void node_changed(libcuda::GraphNode) {} // the node has other parameters
    virtual void node_about_to_be_destroyed(libcuda::GraphNode) {}

    virtual void instantiated(libcuda::GraphExec, libcuda::Graph) = 0;
    // The nodes of the executable graph have the parameters of the nodes of `graph` now.
    virtual void updated(libcuda::GraphExec, libcuda::Graph) = 0;
    // A node of the executable graph has new parameters. `node` belongs to the graph that was instantiated.
    virtual void node_set(libcuda::GraphExec, libcuda::GraphNode) = 0;
    virtual void kernel_node_set(libcuda::GraphExec executable, libcuda::GraphNode node, const libcuda::KernelNode &) {
        node_set(executable, node);
    }
    virtual void memcpy_node_set(libcuda::GraphExec executable, libcuda::GraphNode node, const libcuda::MemcpyNode &) {
        node_set(executable, node);
    }
    virtual void memset_node_set(libcuda::GraphExec executable, libcuda::GraphNode node, const libcuda::MemsetNode &) {
        node_set(executable, node);
    }
    virtual void child_node_set(libcuda::GraphExec executable, libcuda::GraphNode node, libcuda::Graph /*child*/) {
        node_set(executable, node);
    }
    virtual void event_node_set(libcuda::GraphExec executable, libcuda::GraphNode node, libcuda::Event) {
        node_set(executable, node);
    }
    virtual void enabled(libcuda::GraphExec, libcuda::GraphNode, bool /*enabled*/) {}
    // Whether a node of the executable graph may call a function of the host.
    virtual bool may_call_host(libcuda::GraphExec) { return true; }
    virtual Races launched(libcuda::GraphExec, const WatchedStream &, StackId) = 0;
    virtual void executable_about_to_be_destroyed(libcuda::GraphExec) = 0;
    virtual void graph_about_to_be_destroyed(libcuda::Graph) = 0;
};

} // namespace tcuda::watch
