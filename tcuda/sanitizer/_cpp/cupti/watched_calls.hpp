// What the watch does at each call of the driver. The functions are in the source file of their noun, such as
// stream_calls.cpp.
#pragma once

#include "sanitizer/_cpp/cupti/seen_call.hpp"

namespace tcuda::cupti {

// The calls for streams, and for all streams of a context.
void write_value(const SeenCall &);
void wait_for_value(const SeenCall &);
void create_stream(const SeenCall &);
void destroy_stream(const SeenCall &);
void synchronize_stream(const SeenCall &);
void wait_for_event(const SeenCall &);
void synchronize_context(const SeenCall &);
void synchronize_named_context(const SeenCall &);

// The calls for events.
void create_event(const SeenCall &);
void open_event(const SeenCall &);
void record_event(const SeenCall &);
void synchronize_event(const SeenCall &);
void measure_events(const SeenCall &);
void destroy_event(const SeenCall &);

// The calls that take and give back memory of devices and page-locked memory.
void free(const SeenCall &);
void allocate_async(const SeenCall &);
void allocate_from_pool_async(const SeenCall &);
void free_async(const SeenCall &);
void allocate_host(const SeenCall &);
void register_host(const SeenCall &);
void release_host(const SeenCall &);

// The calls that load and unload modules and libraries.
void load_module(const SeenCall &); // from an image in memory
void load_module_file(const SeenCall &);
void unload_module(const SeenCall &);

// The calls that launch kernels and functions of the host.
void launch_kernel(const SeenCall &);
void launch_cooperative(const SeenCall &);
void launch_configured(const SeenCall &);
void launch_on_devices(const SeenCall &);
void queue_host_function(const SeenCall &);

// The calls for captures and graphs.
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
