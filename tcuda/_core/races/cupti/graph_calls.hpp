// The calls for captures and graphs.
#pragma once

#include "races/cupti/seen_call.hpp"

namespace tcuda::cupti {

void begin_capture(const SeenCall &);
void end_capture(const SeenCall &);
void launch_graph(const SeenCall &);
// Adds the watch of graphs to the arguments.
template <void (*function)(const SeenCall &, watch::WatchedGraphs &)> void with_graphs(const SeenCall &call) {
    function(call, call.watch.graphs());
}

void instantiate(const SeenCall &, watch::WatchedGraphs &);
void update_graph(const SeenCall &, watch::WatchedGraphs &);
void destroy_executable(const SeenCall &, watch::WatchedGraphs &);
void destroy_graph(const SeenCall &, watch::WatchedGraphs &);
void set_kernel_node(const SeenCall &, watch::WatchedGraphs &);
void set_kernel_node_v1(const SeenCall &, watch::WatchedGraphs &);
void set_memcpy_node(const SeenCall &, watch::WatchedGraphs &);
void set_memset_node(const SeenCall &, watch::WatchedGraphs &);
void set_child_node(const SeenCall &, watch::WatchedGraphs &);
void set_event_node(const SeenCall &, watch::WatchedGraphs &);
void set_any_node(const SeenCall &, watch::WatchedGraphs &);
void clone_graph(const SeenCall &, watch::WatchedGraphs &);
void add_child_graph(const SeenCall &, watch::WatchedGraphs &);
void add_node(const SeenCall &, watch::WatchedGraphs &);
void add_node_with_edges(const SeenCall &, watch::WatchedGraphs &);
void change_node(const SeenCall &, watch::WatchedGraphs &);
void destroy_node(const SeenCall &, watch::WatchedGraphs &);
void enable_node(const SeenCall &, watch::WatchedGraphs &);

} // namespace tcuda::cupti
