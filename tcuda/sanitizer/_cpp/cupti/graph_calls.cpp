#include "sanitizer/_cpp/cupti/watched_calls.hpp"

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "driver/libcuda_types.hpp"
#include "sanitizer/_cpp/cupti/call_parameters.hpp"

namespace tcuda::cupti {

using watch::CallStream;
using watch::WatchedGraphs;

namespace {

void set_kernel(WatchedGraphs &graphs, const SetNode &set, const void *parameters, std::size_t size) {
    libcuda::KernelNode kernel{};
    std::memcpy(&kernel, parameters, size);
    graphs.kernel_node_set(set.executable, set.node, kernel);
}

void set_memset(WatchedGraphs &graphs, const SetNode &set, const void *parameters) {
    libcuda::MemsetNode memset{};
    std::memcpy(&memset, parameters, offsetof(libcuda::MemsetNode, context));
    graphs.memset_node_set(set.executable, set.node, memset);
}

// The first member of the parameters of a type of node.
std::uintptr_t handle_in(const NodeParameters &parameters) {
    std::uintptr_t handle = 0;
    std::memcpy(&handle, parameters.of_type, sizeof(handle));
    return handle;
}

template <typename Parameters> void add(const SeenCall &call, WatchedGraphs &graphs) {
    const auto &added = call.as<Parameters>();
    if (added.parameters->type == libcuda::node_type_graph)
        graphs.child_added(*added.node, added.graph, handle_in(*added.parameters));
    if (added.parameters->type == libcuda::node_type_conditional) {
        ConditionalNodeParameters parameters;
        std::memcpy(&parameters, added.parameters->of_type, sizeof(parameters));
        graphs.conditional_added(*added.node, added.graph, {parameters.bodies, parameters.bodies + parameters.count});
    }
}

} // namespace

void begin_capture(const SeenCall &call) { call.watch.capture_begun(call.stream(call.as<OnStream>().stream)); }

void end_capture(const SeenCall &call) {
    const CallStream stream = call.stream(call.as<OnStream>().stream);
    if (call.entered)
        call.watch.capture_about_to_end(stream);
    else
        call.watch.capture_not_ended(stream);
}

void launch_graph(const SeenCall &call) {
    const auto &launch = call.as<LaunchGraph>();
    if (call.entered)
        call.watch.graph_about_to_be_launched(call.stream(launch.stream), launch.executable);
    else
        call.watch.graph_launched(call.stream(launch.stream), launch.executable);
}

void instantiate(const SeenCall &call, WatchedGraphs &graphs) {
    const auto &made = call.as<Instantiate>();
    graphs.instantiated(*made.executable, made.graph);
}

void update_graph(const SeenCall &call, WatchedGraphs &graphs) {
    const auto &update = call.as<UpdateGraph>();
    graphs.updated(update.executable, update.graph);
}

void destroy_executable(const SeenCall &call, WatchedGraphs &graphs) {
    graphs.executable_about_to_be_destroyed(call.as<UpdateGraph>().executable);
}

void destroy_graph(const SeenCall &call, WatchedGraphs &graphs) {
    graphs.graph_about_to_be_destroyed(call.as<DestroyGraph>().graph);
}

void set_kernel_node(const SeenCall &call, WatchedGraphs &graphs) {
    const auto &set = call.as<SetNode>();
    set_kernel(graphs, set, set.parameters, sizeof(libcuda::KernelNode));
}

void set_kernel_node_v1(const SeenCall &call, WatchedGraphs &graphs) {
    const auto &set = call.as<SetNode>();
    set_kernel(graphs, set, set.parameters, offsetof(libcuda::KernelNode, kernel));
}

void set_memcpy_node(const SeenCall &call, WatchedGraphs &graphs) {
    const auto &set = call.as<SetNode>();
    graphs.memcpy_node_set(set.executable, set.node, *static_cast<const libcuda::MemcpyNode *>(set.parameters));
}

void set_memset_node(const SeenCall &call, WatchedGraphs &graphs) {
    const auto &set = call.as<SetNode>();
    set_memset(graphs, set, set.parameters);
}

void set_child_node(const SeenCall &call, WatchedGraphs &graphs) {
    const auto &set = call.as<SetNode>();
    graphs.child_node_set(set.executable, set.node, reinterpret_cast<libcuda::Graph>(set.parameters));
}

void set_event_node(const SeenCall &call, WatchedGraphs &graphs) {
    const auto &set = call.as<SetNode>();
    graphs.event_node_set(set.executable, set.node, reinterpret_cast<Event>(set.parameters));
}

void set_any_node(const SeenCall &call, WatchedGraphs &graphs) {
    const auto &set = call.as<SetNode>();
    const auto &parameters = *static_cast<const NodeParameters *>(set.parameters);
    switch (parameters.type) {
    case node_type_kernel:
        set_kernel(graphs, set, parameters.of_type, sizeof(libcuda::KernelNode));
        break;
    case libcuda::node_type_memcpy: {
        MemcpyNodeParameters memcpy_parameters;
        std::memcpy(&memcpy_parameters, parameters.of_type, sizeof(memcpy_parameters));
        graphs.memcpy_node_set(set.executable, set.node, memcpy_parameters.copy);
        break;
    }
    case libcuda::node_type_memset:
        set_memset(graphs, set, parameters.of_type);
        break;
    case libcuda::node_type_graph:
        graphs.child_node_set(set.executable, set.node, handle_in(parameters));
        break;
    case node_type_wait_event:
    case node_type_record_event:
        graphs.event_node_set(set.executable, set.node, handle_in(parameters));
        break;
    default:
        graphs.node_set(set.executable, set.node);
    }
}

void clone_graph(const SeenCall &call, WatchedGraphs &graphs) {
    const auto &clone = call.as<CloneGraph>();
    graphs.cloned(*clone.clone, clone.original);
}

void add_child_graph(const SeenCall &call, WatchedGraphs &graphs) {
    const auto &added = call.as<AddChildGraph>();
    graphs.child_added(*added.node, added.graph, added.child);
}

void add_node(const SeenCall &call, WatchedGraphs &graphs) { add<AddNode>(call, graphs); }

void add_node_with_edges(const SeenCall &call, WatchedGraphs &graphs) { add<AddNodeWithEdges>(call, graphs); }

void change_node(const SeenCall &call, WatchedGraphs &graphs) { graphs.node_changed(call.as<OnNode>().node); }

void destroy_node(const SeenCall &call, WatchedGraphs &graphs) {
    graphs.node_about_to_be_destroyed(call.as<OnNode>().node);
}

void enable_node(const SeenCall &call, WatchedGraphs &graphs) {
    const auto &set = call.as<EnableNode>();
    graphs.enabled(set.executable, set.node, set.enabled != 0);
}

} // namespace tcuda::cupti
