#include "cupti/calls.hpp"

#include <cstring>
#include <memory>
#include <vector>

#include "driver/libcuda_types.hpp"

namespace tcuda::cupti {
namespace {

using libcuda::Context;
using libcuda::DevicePointer;
using libcuda::Function;
using libcuda::Graph;
using libcuda::GraphExec;
using libcuda::GraphNode;
using watch::CallStream;
using watch::Copy;
using watch::CopyEnd;
using watch::Fill;
using watch::Launch;
using watch::WatchedGraphs;
using Memory = CopyEnd::Memory;

// Each struct has the parameters of the calls that its comment names, as the driver passes them.

struct LaunchKernel { // cuLaunchKernel, cuLaunchCooperativeKernel, whose list ends with `parameters`
    Function function;
    unsigned grid[3], block[3], shared_memory;
    Stream stream;
    void **parameters;
    void **extra;
};
struct LaunchKernelEx {
    const libcuda::LaunchConfiguration *configuration;
    Function function;
    void **parameters;
    void **extra;
};
struct LaunchParameters { // CUDA_LAUNCH_PARAMS
    Function function;
    unsigned grid[3], block[3], shared_memory;
    Stream stream;
    void **parameters;
};
struct LaunchCooperativeMultiDevice {
    const LaunchParameters *launches;
    unsigned count, flags;
};
struct OnStream { // the calls whose first parameter is a stream
    Stream stream;
};

struct CopyAny { // cuMemcpy, cuMemcpyDtoD, cuMemcpyHtoD, cuMemcpyDtoH
    std::uintptr_t target, source;
    std::size_t size;
    Stream stream; // only of the asynchronous calls
};
struct CopyPeer {
    DevicePointer target;
    Context target_context;
    DevicePointer source;
    Context source_context;
    std::size_t size;
    Stream stream;
};
struct CopyToArray { // cuMemcpyHtoA, cuMemcpyDtoA
    std::uintptr_t array;
    std::size_t offset;
    std::uintptr_t source;
    std::size_t size;
    Stream stream;
};
struct CopyFromArray { // cuMemcpyAtoH, cuMemcpyAtoD
    std::uintptr_t target, array;
    std::size_t offset, size;
    Stream stream;
};
struct CopyRows { // cuMemcpy2D
    const libcuda::RowCopy *copy;
    Stream stream;
};
struct CopyBox { // cuMemcpy3D, and cuMemcpy3DPeer, whose struct has the same layout
    const libcuda::MemcpyNode *copy;
    Stream stream;
};
struct CopyBatch { // cuMemcpyBatchAsync_v2
    const DevicePointer *targets, *sources;
    const std::size_t *sizes;
    std::size_t count;
    const void *attributes;
    const std::size_t *attribute_places;
    std::size_t attribute_count;
    Stream stream;
};
struct CopyBatchWithFailure { // cuMemcpyBatchAsync
    const DevicePointer *targets, *sources;
    const std::size_t *sizes;
    std::size_t count;
    const void *attributes;
    const std::size_t *attribute_places;
    std::size_t attribute_count;
    std::size_t *failed;
    Stream stream;
};
struct BoxOperand { // CUmemcpy3DOperand
    int type;
    DevicePointer pointer; // or the array
    std::size_t row_length, layer_height;
    int location[2];
};
struct BoxOperation { // CUDA_MEMCPY3D_BATCH_OP
    BoxOperand source, target;
    std::size_t width, height, depth;
    int source_order;
    unsigned flags;
};
struct CopyBoxes { // cuMemcpy3DBatchAsync_v2
    std::size_t count;
    const BoxOperation *operations;
    unsigned long long flags;
    Stream stream;
};
struct CopyBoxesWithFailure { // cuMemcpy3DBatchAsync
    std::size_t count;
    const BoxOperation *operations;
    std::size_t *failed;
    unsigned long long flags;
    Stream stream;
};

template <typename Value> struct Set { // cuMemsetD8, cuMemsetD16, cuMemsetD32
    DevicePointer target;
    Value value;
    std::size_t count;
    Stream stream;
};
template <typename Value> struct SetRows { // cuMemsetD2D8, cuMemsetD2D16, cuMemsetD2D32
    DevicePointer target;
    std::size_t pitch;
    Value value;
    std::size_t width, height;
    Stream stream;
};

struct StreamCreate { // cuStreamCreate, cuStreamCreateWithPriority
    const Stream *stream;
    unsigned flags;
};
struct StreamWaitEvent {
    Stream stream;
    Event event;
};
struct StreamValue { // cuStreamWriteValue32 and others
    Stream stream;
    DevicePointer address;
};
struct EventCreate { // cuEventCreate, and cuIpcOpenEventHandle, which has no flags
    const Event *event;
    unsigned flags;
};
struct EventRecord { // cuEventRecord, cuEventRecordWithFlags
    Event event;
    Stream stream;
};
struct OnEvent { // the calls whose first parameter is an event
    Event event;
};
struct EventElapsedTime {
    float *milliseconds;
    Event start, end;
};
struct ContextSynchronize { // cuCtxSynchronize_v2
    Context context;
};

struct Free {
    DevicePointer address;
};
struct AllocateAsync {
    const DevicePointer *address;
    std::size_t size;
    Stream stream;
};
struct AllocateFromPoolAsync {
    const DevicePointer *address;
    std::size_t size;
    std::uintptr_t pool;
    Stream stream;
};
struct FreeAsync {
    DevicePointer address;
    Stream stream;
};
struct AllocateHost { // cuMemAllocHost, cuMemHostAlloc
    void *const *address;
    std::size_t size;
};
struct RegisterHost {
    void *address;
    std::size_t size;
};
struct ReleaseHost { // cuMemFreeHost, cuMemHostUnregister
    void *address;
};

struct ModuleLoad { // the calls that load a module or a library; cuModuleLoad and cuLibraryLoadFromFile name a file
    const watch::Module *module;
    const void *image;
};
struct ModuleUnload {
    watch::Module module;
};

struct Instantiate { // the calls that instantiate a graph
    const GraphExec *executable;
    Graph graph;
};
struct UpdateGraph {
    GraphExec executable;
    Graph graph;
};
struct LaunchGraph {
    GraphExec executable;
    Stream stream;
};
struct DestroyGraph {
    Graph graph;
};
struct SetNode {
    GraphExec executable;
    GraphNode node;
    const void *parameters;
};
struct EnableNode {
    GraphExec executable;
    GraphNode node;
    unsigned enabled;
};
struct NodeParameters { // CUgraphNodeParams
    int type, reserved[3];
    std::byte of_type[1];
};
struct MemcpyNodeParameters { // CUDA_MEMCPY_NODE_PARAMS
    int flags, reserved;
    Context context;
    libcuda::MemcpyNode copy;
};

struct CloneGraph {
    const Graph *clone;
    Graph original;
};
struct AddChildGraph {
    const GraphNode *node;
    Graph graph;
    const GraphNode *dependencies;
    std::size_t dependency_count;
    Graph child;
};
struct AddNode {
    const GraphNode *node;
    Graph graph;
    const GraphNode *dependencies;
    std::size_t dependency_count;
    const NodeParameters *parameters;
};
struct AddNodeWithEdges { // cuGraphAddNode_v2
    const GraphNode *node;
    Graph graph;
    const GraphNode *dependencies;
    const void *edges;
    std::size_t dependency_count;
    const NodeParameters *parameters;
};
struct OnNode { // the calls whose first parameter is a node
    GraphNode node;
};

// CU_GRAPH_NODE_TYPE_KERNEL, CU_GRAPH_NODE_TYPE_WAIT_EVENT and CU_GRAPH_NODE_TYPE_EVENT_RECORD
constexpr int node_type_kernel = 0, node_type_wait_event = 6, node_type_record_event = 7;
constexpr unsigned event_interprocess = 4; // CU_EVENT_INTERPROCESS
constexpr int memory_host = 1, memory_device = 2, memory_array = 3;    // CUmemorytype
constexpr int operand_pointer = 1;                                     // CU_MEMCPY_OPERAND_TYPE_POINTER

// Launches

void launch_kernel(const SeenCall &call) {
    const auto &launch = call.as<LaunchKernel>();
    call.watch.launched(call.stream(launch.stream), {launch.function, call.symbol, launch.parameters, launch.extra});
}

void launch_cooperative(const SeenCall &call) {
    const auto &launch = call.as<LaunchKernel>();
    call.watch.launched(call.stream(launch.stream), {launch.function, call.symbol, launch.parameters, nullptr});
}

void launch_configured(const SeenCall &call) {
    const auto &launch = call.as<LaunchKernelEx>();
    if (launch.configuration != nullptr)
        call.watch.launched(call.stream(launch.configuration->stream),
                            {launch.function, call.symbol, launch.parameters, launch.extra});
}

void launch_on_devices(const SeenCall &call) {
    const auto &all = call.as<LaunchCooperativeMultiDevice>();
    std::vector<std::pair<CallStream, Launch>> launches;
    for (unsigned place = 0; place < all.count; ++place) {
        const LaunchParameters &launch = all.launches[place];
        launches.emplace_back(call.stream(launch.stream),
                              Launch{launch.function, call.symbol, launch.parameters, nullptr});
    }
    call.watch.launched_together(launches);
}

void queue_host_function(const SeenCall &call) {
    call.watch.host_function_queued(call.stream(call.as<OnStream>().stream));
}

// Copies

template <typename Parameters> CallStream stream_of(const SeenCall &call, bool blocking) {
    return call.stream(blocking ? 0 : call.as<Parameters>().stream);
}

template <Memory target, Memory source, bool blocking> void copy_bytes(const SeenCall &call) {
    const auto &copy = call.as<CopyAny>();
    call.watch.copied(stream_of<CopyAny>(call, blocking),
                      {{target, copy.target}, {source, copy.source}, copy.size, 1, 1, blocking});
}

template <bool blocking> void copy_peer(const SeenCall &call) {
    const auto &copy = call.as<CopyPeer>();
    call.watch.copied(
        stream_of<CopyPeer>(call, blocking),
        {{Memory::device, copy.target}, {Memory::device, copy.source}, copy.size, 1, 1, blocking});
}

template <Memory source, bool blocking> void copy_to_array(const SeenCall &call) {
    const auto &copy = call.as<CopyToArray>();
    call.watch.copied(stream_of<CopyToArray>(call, blocking),
                      {{Memory::array}, {source, copy.source}, copy.size, 1, 1, blocking});
}

template <Memory target, bool blocking> void copy_from_array(const SeenCall &call) {
    const auto &copy = call.as<CopyFromArray>();
    call.watch.copied(stream_of<CopyFromArray>(call, blocking),
                      {{target, copy.target}, {Memory::array}, copy.size, 1, 1, blocking});
}

CopyEnd end_of(int memory_type, std::uintptr_t host, std::uintptr_t device, std::size_t offset, std::size_t pitch,
               std::size_t slice) {
    switch (memory_type) {
    case memory_array:
        return {Memory::array};
    case memory_host:
        return {Memory::host, host + offset, pitch, slice};
    case memory_device:
        return {Memory::device, device + offset, pitch, slice};
    default:
        return {Memory::unified, device + offset, pitch, slice};
    }
}

template <bool blocking> void copy_rows(const SeenCall &call) {
    const libcuda::RowCopy *const copy = call.as<CopyRows>().copy;
    if (copy == nullptr)
        return;
    const auto end = [&](const libcuda::RowCopyEnd &end) {
        const std::size_t pitch = end.pitch != 0 ? end.pitch : copy->width;
        return end_of(end.memory_type, end.host, end.device, end.y * pitch + end.x, pitch, 0);
    };
    call.watch.copied(stream_of<CopyRows>(call, blocking),
                      {end(copy->target), end(copy->source), copy->width, copy->height, 1, blocking});
}

template <bool blocking> void copy_box(const SeenCall &call) {
    const libcuda::MemcpyNode *const copy = call.as<CopyBox>().copy;
    if (copy == nullptr)
        return;
    const auto end = [&](const libcuda::MemcpyEnd &end) {
        const std::size_t pitch = end.pitch != 0 ? end.pitch : copy->width;
        const std::size_t slice = pitch * (end.height != 0 ? end.height : copy->height);
        return end_of(end.memory_type, end.host, end.device, end.z * slice + end.y * pitch + end.x, pitch, slice);
    };
    call.watch.copied(stream_of<CopyBox>(call, blocking),
                      {end(copy->target), end(copy->source), copy->width, copy->height, copy->depth, blocking});
}

template <typename Parameters> void copy_batch(const SeenCall &call) {
    const auto &batch = call.as<Parameters>();
    std::vector<Copy> copies;
    for (std::size_t place = 0; place < batch.count; ++place)
        copies.push_back({{Memory::unified, static_cast<Address>(batch.targets[place])},
                          {Memory::unified, static_cast<Address>(batch.sources[place])},
                          batch.sizes[place]});
    call.watch.copied_batch(call.stream(batch.stream), copies);
}

// In a copy from or to an array, the extent counts items of the array, whose size is unknown here. Such a copy is left
// out.
template <typename Parameters> void copy_boxes(const SeenCall &call) {
    const auto &batch = call.as<Parameters>();
    std::vector<Copy> copies;
    for (const BoxOperation *operation = batch.operations; operation != batch.operations + batch.count; ++operation) {
        if (operation->target.type != operand_pointer || operation->source.type != operand_pointer)
            continue;
        const auto end = [&](const BoxOperand &operand) {
            const std::size_t pitch = operand.row_length != 0 ? operand.row_length : operation->width;
            const std::size_t rows = operand.layer_height != 0 ? operand.layer_height : operation->height;
            return CopyEnd{Memory::unified, static_cast<Address>(operand.pointer), pitch, pitch * rows};
        };
        copies.push_back({end(operation->target), end(operation->source), operation->width, operation->height,
                          operation->depth});
    }
    call.watch.copied_batch(call.stream(batch.stream), copies);
}

// Fills

template <typename Value, bool blocking> void set_items(const SeenCall &call) {
    const auto &set = call.as<Set<Value>>();
    call.watch.set(stream_of<Set<Value>>(call, blocking),
                   {static_cast<Address>(set.target), set.count * sizeof(Value)});
}

template <typename Value, bool blocking> void set_rows(const SeenCall &call) {
    const auto &set = call.as<SetRows<Value>>();
    call.watch.set(stream_of<SetRows<Value>>(call, blocking),
                   {static_cast<Address>(set.target), set.width * sizeof(Value), set.height, set.pitch});
}

// Streams

void write_value(const SeenCall &call) {
    const auto &write = call.as<StreamValue>();
    call.watch.value_written(call.stream(write.stream), write.address);
}

void wait_for_value(const SeenCall &call) {
    const auto &wait = call.as<StreamValue>();
    call.watch.value_waited(call.stream(wait.stream), wait.address);
}

void create_stream(const SeenCall &call) {
    const auto &made = call.as<StreamCreate>();
    call.watch.stream_created(call.context, *made.stream, (made.flags & libcuda::stream_non_blocking) == 0);
}

void destroy_stream(const SeenCall &call) { call.watch.stream_about_to_be_destroyed(call.as<OnStream>().stream); }

void synchronize_stream(const SeenCall &call) {
    call.watch.stream_synchronized(call.stream(call.as<OnStream>().stream));
}

void wait_for_event(const SeenCall &call) {
    const auto &wait = call.as<StreamWaitEvent>();
    call.watch.event_waited(call.stream(wait.stream), wait.event);
}

void synchronize_context(const SeenCall &call) { call.watch.context_synchronized(call.context); }

void synchronize_named_context(const SeenCall &call) {
    const Context context = call.as<ContextSynchronize>().context;
    call.watch.context_synchronized(context != 0 ? context : call.context);
}

// Events

void create_event(const SeenCall &call) {
    const auto &made = call.as<EventCreate>();
    if ((made.flags & event_interprocess) != 0)
        call.watch.event_shared(*made.event);
}

void open_event(const SeenCall &call) { call.watch.event_shared(*call.as<EventCreate>().event); }

void record_event(const SeenCall &call) {
    const auto &record = call.as<EventRecord>();
    call.watch.event_recorded(call.stream(record.stream), record.event);
}

void synchronize_event(const SeenCall &call) { call.watch.event_synchronized(call.as<OnEvent>().event); }

// The time between two events is known once both are complete.
void measure_events(const SeenCall &call) {
    const auto &events = call.as<EventElapsedTime>();
    call.watch.event_synchronized(events.start);
    call.watch.event_synchronized(events.end);
}

void destroy_event(const SeenCall &call) { call.watch.event_about_to_be_destroyed(call.as<OnEvent>().event); }

// Memory

void free(const SeenCall &call) {
    if (call.entered)
        call.watch.memory_about_to_be_freed(call.context, call.as<Free>().address);
    else
        call.watch.memory_freed(call.context);
}

template <typename Parameters> void allocate_async(const SeenCall &call) {
    const auto &made = call.as<Parameters>();
    call.watch.memory_allocated_async(call.stream(made.stream), *made.address, made.size);
}

void free_async(const SeenCall &call) {
    const auto &freed = call.as<FreeAsync>();
    call.watch.memory_about_to_be_freed_async(call.stream(freed.stream), freed.address);
}

void allocate_host(const SeenCall &call) {
    const auto &made = call.as<AllocateHost>();
    call.watch.host_memory_locked(reinterpret_cast<Address>(*made.address), made.size);
}

void register_host(const SeenCall &call) {
    const auto &made = call.as<RegisterHost>();
    call.watch.host_memory_locked(reinterpret_cast<Address>(made.address), made.size);
}

void release_host(const SeenCall &call) {
    call.watch.host_memory_about_to_be_unlocked(reinterpret_cast<Address>(call.as<ReleaseHost>().address));
}

// Modules

// The cubins that the driver has loaded in the current call of this thread.
struct LoadingCall {
    bool active = false;
    std::vector<std::uint32_t> cubins;
};
LoadingCall &loading_call() {
    static thread_local LoadingCall loading;
    return loading;
}

template <bool is_library, bool has_image> void load_module(const SeenCall &call) {
    LoadingCall &loading = loading_call();
    if (call.entered) {
        loading.active = true;
        loading.cubins.clear();
        return;
    }
    loading.active = false;
    if (call.failed)
        return;
    const auto &loaded = call.as<ModuleLoad>();
    call.watch.launches().module_loaded({*loaded.module, is_library, has_image ? loaded.image : nullptr,
                                         loading.cubins.data(), loading.cubins.size()});
}

void unload_module(const SeenCall &call) { call.watch.launches().module_unloaded(call.as<ModuleUnload>().module); }

// Captures and graphs

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
    call.watch.graph_launched(call.stream(launch.stream), launch.executable);
}

template <void (*function)(const SeenCall &, WatchedGraphs &)> void with_graphs(const SeenCall &call) {
    function(call, call.watch.graphs());
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
    graphs.child_node_set(set.executable, set.node, reinterpret_cast<Graph>(set.parameters));
}

void set_event_node(const SeenCall &call, WatchedGraphs &graphs) {
    const auto &set = call.as<SetNode>();
    graphs.event_node_set(set.executable, set.node, reinterpret_cast<Event>(set.parameters));
}

// The first member of the parameters of a type of node.
std::uintptr_t handle_in(const NodeParameters &parameters) {
    std::uintptr_t handle = 0;
    std::memcpy(&handle, parameters.of_type, sizeof(handle));
    return handle;
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

template <typename Parameters> void add_node(const SeenCall &call, WatchedGraphs &graphs) {
    const auto &added = call.as<Parameters>();
    if (added.parameters->type == libcuda::node_type_graph)
        graphs.child_added(*added.node, added.graph, handle_in(*added.parameters));
}

void change_node(const SeenCall &call, WatchedGraphs &graphs) { graphs.node_changed(call.as<OnNode>().node); }

void destroy_node(const SeenCall &call, WatchedGraphs &graphs) {
    graphs.node_about_to_be_destroyed(call.as<OnNode>().node);
}

void enable_node(const SeenCall &call, WatchedGraphs &graphs) {
    const auto &set = call.as<EnableNode>();
    graphs.enabled(set.executable, set.node, set.enabled != 0);
}

constexpr auto host = Memory::host, device = Memory::device, unified = Memory::unified;
constexpr bool blocking = true, asynchronous = false;
constexpr std::uint8_t done = after_success, first = at_entry;

// The variants _ptsz and _ptds take the stream 0 for the per-thread default stream. Variants with addresses of 32 bits
// are left out, because no program of 64 bits can call them.
const WatchedCall table[] = {
    {307, "cuLaunchKernel", launch_kernel, done, false},
    {442, "cuLaunchKernel_ptsz", launch_kernel, done, true},
    {477, "cuLaunchCooperativeKernel", launch_cooperative, done, false},
    {478, "cuLaunchCooperativeKernel_ptsz", launch_cooperative, done, true},
    {480, "cuLaunchCooperativeKernelMultiDevice", launch_on_devices, done, false},
    {652, "cuLaunchKernelEx", launch_configured, done, false},
    {653, "cuLaunchKernelEx_ptsz", launch_configured, done, true},
    {527, "cuLaunchHostFunc", queue_host_function, done, false},
    {528, "cuLaunchHostFunc_ptsz", queue_host_function, done, true},
    {346, "cuStreamAddCallback", queue_host_function, done, false},
    {437, "cuStreamAddCallback_ptsz", queue_host_function, done, true},

    {305, "cuMemcpy", copy_bytes<unified, unified, blocking>, done, false},
    {248, "cuMemcpy_v2", copy_bytes<unified, unified, blocking>, done, false},
    {408, "cuMemcpy_ptds", copy_bytes<unified, unified, blocking>, done, true},
    {306, "cuMemcpyAsync", copy_bytes<unified, unified, asynchronous>, done, false},
    {418, "cuMemcpyAsync_ptsz", copy_bytes<unified, unified, asynchronous>, done, true},
    {276, "cuMemcpyHtoD_v2", copy_bytes<device, host, blocking>, done, false},
    {397, "cuMemcpyHtoD_v2_ptds", copy_bytes<device, host, blocking>, done, true},
    {277, "cuMemcpyHtoDAsync_v2", copy_bytes<device, host, asynchronous>, done, false},
    {421, "cuMemcpyHtoDAsync_v2_ptsz", copy_bytes<device, host, asynchronous>, done, true},
    {278, "cuMemcpyDtoH_v2", copy_bytes<host, device, blocking>, done, false},
    {398, "cuMemcpyDtoH_v2_ptds", copy_bytes<host, device, blocking>, done, true},
    {279, "cuMemcpyDtoHAsync_v2", copy_bytes<host, device, asynchronous>, done, false},
    {422, "cuMemcpyDtoHAsync_v2_ptsz", copy_bytes<host, device, asynchronous>, done, true},
    {280, "cuMemcpyDtoD_v2", copy_bytes<device, device, blocking>, done, false},
    {399, "cuMemcpyDtoD_v2_ptds", copy_bytes<device, device, blocking>, done, true},
    {281, "cuMemcpyDtoDAsync_v2", copy_bytes<device, device, asynchronous>, done, false},
    {423, "cuMemcpyDtoDAsync_v2_ptsz", copy_bytes<device, device, asynchronous>, done, true},
    {318, "cuMemcpyPeer", copy_peer<blocking>, done, false},
    {409, "cuMemcpyPeer_ptds", copy_peer<blocking>, done, true},
    {319, "cuMemcpyPeerAsync", copy_peer<asynchronous>, done, false},
    {426, "cuMemcpyPeerAsync_ptsz", copy_peer<asynchronous>, done, true},
    {285, "cuMemcpyDtoA_v2", copy_to_array<device, blocking>, done, false},
    {400, "cuMemcpyDtoA_v2_ptds", copy_to_array<device, blocking>, done, true},
    {284, "cuMemcpyAtoD_v2", copy_from_array<device, blocking>, done, false},
    {401, "cuMemcpyAtoD_v2_ptds", copy_from_array<device, blocking>, done, true},
    {292, "cuMemcpyHtoA_v2", copy_to_array<host, blocking>, done, false},
    {402, "cuMemcpyHtoA_v2_ptds", copy_to_array<host, blocking>, done, true},
    {282, "cuMemcpyAtoH_v2", copy_from_array<host, blocking>, done, false},
    {403, "cuMemcpyAtoH_v2_ptds", copy_from_array<host, blocking>, done, true},
    {293, "cuMemcpyHtoAAsync_v2", copy_to_array<host, asynchronous>, done, false},
    {419, "cuMemcpyHtoAAsync_v2_ptsz", copy_to_array<host, asynchronous>, done, true},
    {283, "cuMemcpyAtoHAsync_v2", copy_from_array<host, asynchronous>, done, false},
    {420, "cuMemcpyAtoHAsync_v2_ptsz", copy_from_array<host, asynchronous>, done, true},
    {287, "cuMemcpy2D_v2", copy_rows<blocking>, done, false},
    {405, "cuMemcpy2D_v2_ptds", copy_rows<blocking>, done, true},
    {288, "cuMemcpy2DUnaligned_v2", copy_rows<blocking>, done, false},
    {406, "cuMemcpy2DUnaligned_v2_ptds", copy_rows<blocking>, done, true},
    {289, "cuMemcpy2DAsync_v2", copy_rows<asynchronous>, done, false},
    {424, "cuMemcpy2DAsync_v2_ptsz", copy_rows<asynchronous>, done, true},
    {290, "cuMemcpy3D_v2", copy_box<blocking>, done, false},
    {407, "cuMemcpy3D_v2_ptds", copy_box<blocking>, done, true},
    {291, "cuMemcpy3DAsync_v2", copy_box<asynchronous>, done, false},
    {425, "cuMemcpy3DAsync_v2_ptsz", copy_box<asynchronous>, done, true},
    {320, "cuMemcpy3DPeer", copy_box<blocking>, done, false},
    {410, "cuMemcpy3DPeer_ptds", copy_box<blocking>, done, true},
    {321, "cuMemcpy3DPeerAsync", copy_box<asynchronous>, done, false},
    {427, "cuMemcpy3DPeerAsync_ptsz", copy_box<asynchronous>, done, true},
    {776, "cuMemcpyBatchAsync", copy_batch<CopyBatchWithFailure>, done, false},
    {777, "cuMemcpyBatchAsync_ptsz", copy_batch<CopyBatchWithFailure>, done, true},
    {796, "cuMemcpyBatchAsync_v2", copy_batch<CopyBatch>, done, false},
    {797, "cuMemcpyBatchAsync_v2_ptsz", copy_batch<CopyBatch>, done, true},
    {778, "cuMemcpy3DBatchAsync", copy_boxes<CopyBoxesWithFailure>, done, false},
    {779, "cuMemcpy3DBatchAsync_ptsz", copy_boxes<CopyBoxesWithFailure>, done, true},
    {798, "cuMemcpy3DBatchAsync_v2", copy_boxes<CopyBoxes>, done, false},
    {799, "cuMemcpy3DBatchAsync_v2_ptsz", copy_boxes<CopyBoxes>, done, true},

    {249, "cuMemsetD8_v2", set_items<std::uint8_t, blocking>, done, false},
    {411, "cuMemsetD8_v2_ptds", set_items<std::uint8_t, blocking>, done, true},
    {250, "cuMemsetD16_v2", set_items<std::uint16_t, blocking>, done, false},
    {412, "cuMemsetD16_v2_ptds", set_items<std::uint16_t, blocking>, done, true},
    {251, "cuMemsetD32_v2", set_items<std::uint32_t, blocking>, done, false},
    {413, "cuMemsetD32_v2_ptds", set_items<std::uint32_t, blocking>, done, true},
    {252, "cuMemsetD2D8_v2", set_rows<std::uint8_t, blocking>, done, false},
    {414, "cuMemsetD2D8_v2_ptds", set_rows<std::uint8_t, blocking>, done, true},
    {253, "cuMemsetD2D16_v2", set_rows<std::uint16_t, blocking>, done, false},
    {415, "cuMemsetD2D16_v2_ptds", set_rows<std::uint16_t, blocking>, done, true},
    {254, "cuMemsetD2D32_v2", set_rows<std::uint32_t, blocking>, done, false},
    {416, "cuMemsetD2D32_v2_ptds", set_rows<std::uint32_t, blocking>, done, true},
    {216, "cuMemsetD8Async", set_items<std::uint8_t, asynchronous>, done, false},
    {428, "cuMemsetD8Async_ptsz", set_items<std::uint8_t, asynchronous>, done, true},
    {218, "cuMemsetD16Async", set_items<std::uint16_t, asynchronous>, done, false},
    {429, "cuMemsetD16Async_ptsz", set_items<std::uint16_t, asynchronous>, done, true},
    {220, "cuMemsetD32Async", set_items<std::uint32_t, asynchronous>, done, false},
    {430, "cuMemsetD32Async_ptsz", set_items<std::uint32_t, asynchronous>, done, true},
    {222, "cuMemsetD2D8Async", set_rows<std::uint8_t, asynchronous>, done, false},
    {431, "cuMemsetD2D8Async_ptsz", set_rows<std::uint8_t, asynchronous>, done, true},
    {224, "cuMemsetD2D16Async", set_rows<std::uint16_t, asynchronous>, done, false},
    {432, "cuMemsetD2D16Async_ptsz", set_rows<std::uint16_t, asynchronous>, done, true},
    {226, "cuMemsetD2D32Async", set_rows<std::uint32_t, asynchronous>, done, false},
    {433, "cuMemsetD2D32Async_ptsz", set_rows<std::uint32_t, asynchronous>, done, true},

    {124, "cuStreamCreate", create_stream, done, false},
    {367, "cuStreamCreateWithPriority", create_stream, done, false},
    {127, "cuStreamDestroy", destroy_stream, first, false},
    {326, "cuStreamDestroy_v2", destroy_stream, first, false},
    {126, "cuStreamSynchronize", synchronize_stream, done, false},
    {440, "cuStreamSynchronize_ptsz", synchronize_stream, done, true},
    {125, "cuStreamQuery", synchronize_stream, done, false},
    {439, "cuStreamQuery_ptsz", synchronize_stream, done, true},
    {295, "cuStreamWaitEvent", wait_for_event, done, false},
    {436, "cuStreamWaitEvent_ptsz", wait_for_event, done, true},
    {458, "cuStreamWaitValue32", wait_for_value, done, false},
    {459, "cuStreamWaitValue32_ptsz", wait_for_value, done, true},
    {473, "cuStreamWaitValue64", wait_for_value, done, false},
    {474, "cuStreamWaitValue64_ptsz", wait_for_value, done, true},
    {659, "cuStreamWaitValue32_v2", wait_for_value, done, false},
    {660, "cuStreamWaitValue32_v2_ptsz", wait_for_value, done, true},
    {661, "cuStreamWaitValue64_v2", wait_for_value, done, false},
    {662, "cuStreamWaitValue64_v2_ptsz", wait_for_value, done, true},
    {460, "cuStreamWriteValue32", write_value, done, false},
    {461, "cuStreamWriteValue32_ptsz", write_value, done, true},
    {475, "cuStreamWriteValue64", write_value, done, false},
    {476, "cuStreamWriteValue64_ptsz", write_value, done, true},
    {663, "cuStreamWriteValue32_v2", write_value, done, false},
    {664, "cuStreamWriteValue32_v2_ptsz", write_value, done, true},
    {665, "cuStreamWriteValue64_v2", write_value, done, false},
    {666, "cuStreamWriteValue64_v2_ptsz", write_value, done, true},
    {17, "cuCtxSynchronize", synchronize_context, done, false},
    {800, "cuCtxSynchronize_v2", synchronize_named_context, done, false},

    {118, "cuEventCreate", create_event, done, false},
    {335, "cuIpcOpenEventHandle", open_event, done, false},
    {119, "cuEventRecord", record_event, done, false},
    {441, "cuEventRecord_ptsz", record_event, done, true},
    {587, "cuEventRecordWithFlags", record_event, done, false},
    {588, "cuEventRecordWithFlags_ptsz", record_event, done, true},
    {120, "cuEventQuery", synchronize_event, done, false},
    {121, "cuEventSynchronize", synchronize_event, done, false},
    {123, "cuEventElapsedTime", measure_events, done, false},
    {780, "cuEventElapsedTime_v2", measure_events, done, false},
    {122, "cuEventDestroy", destroy_event, first, false},
    {325, "cuEventDestroy_v2", destroy_event, first, false},

    {245, "cuMemFree_v2", free, first | done, false},
    {598, "cuMemAllocAsync", allocate_async<AllocateAsync>, done, false},
    {599, "cuMemAllocAsync_ptsz", allocate_async<AllocateAsync>, done, true},
    {611, "cuMemAllocFromPoolAsync", allocate_async<AllocateFromPoolAsync>, done, false},
    {612, "cuMemAllocFromPoolAsync_ptsz", allocate_async<AllocateFromPoolAsync>, done, true},
    {600, "cuMemFreeAsync", free_async, first, false},
    {601, "cuMemFreeAsync_ptsz", free_async, first, true},
    {39, "cuMemHostAlloc", allocate_host, done, false},
    {271, "cuMemHostAlloc_v2", allocate_host, done, false},
    {294, "cuMemAllocHost_v2", allocate_host, done, false},
    {301, "cuMemHostRegister", register_host, done, false},
    {379, "cuMemHostRegister_v2", register_host, done, false},
    {38, "cuMemFreeHost", release_host, first, false},
    {302, "cuMemHostUnregister", release_host, first, false},

    {18, "cuModuleLoad", load_module<false, false>, first | done | after_failure, false},
    {19, "cuModuleLoadData", load_module<false, true>, first | done | after_failure, false},
    {20, "cuModuleLoadDataEx", load_module<false, true>, first | done | after_failure, false},
    {21, "cuModuleLoadFatBinary", load_module<false, true>, first | done | after_failure, false},
    {22, "cuModuleUnload", unload_module, first, false},
    {678, "cuLibraryLoadData", load_module<true, true>, first | done | after_failure, false},
    {679, "cuLibraryLoadFromFile", load_module<true, false>, first | done | after_failure, false},
    {680, "cuLibraryUnload", unload_module, first, false},

    {495, "cuStreamBeginCapture", begin_capture, done, false},
    {496, "cuStreamBeginCapture_ptsz", begin_capture, done, true},
    {539, "cuStreamBeginCapture_v2", begin_capture, done, false},
    {540, "cuStreamBeginCapture_v2_ptsz", begin_capture, done, true},
    {720, "cuStreamBeginCaptureToGraph", begin_capture, done, false},
    {721, "cuStreamBeginCaptureToGraph_ptsz", begin_capture, done, true},
    {497, "cuStreamEndCapture", end_capture, first | after_failure, false},
    {498, "cuStreamEndCapture_ptsz", end_capture, first | after_failure, true},
    {513, "cuGraphInstantiate", with_graphs<instantiate>, done, false},
    {578, "cuGraphInstantiate_v2", with_graphs<instantiate>, done, false},
    {643, "cuGraphInstantiateWithFlags", with_graphs<instantiate>, done, false},
    {656, "cuGraphInstantiateWithParams", with_graphs<instantiate>, done, false},
    {657, "cuGraphInstantiateWithParams_ptsz", with_graphs<instantiate>, done, true},
    {514, "cuGraphLaunch", launch_graph, done, false},
    {515, "cuGraphLaunch_ptsz", launch_graph, done, true},
    {561, "cuGraphExecUpdate", with_graphs<update_graph>, done, false},
    {696, "cuGraphExecUpdate_v2", with_graphs<update_graph>, done, false},
    {538, "cuGraphExecKernelNodeSetParams", with_graphs<set_kernel_node_v1>, done, false},
    {692, "cuGraphExecKernelNodeSetParams_v2", with_graphs<set_kernel_node>, done, false},
    {562, "cuGraphExecMemcpyNodeSetParams", with_graphs<set_memcpy_node>, done, false},
    {563, "cuGraphExecMemsetNodeSetParams", with_graphs<set_memset_node>, done, false},
    {586, "cuGraphExecChildGraphNodeSetParams", with_graphs<set_child_node>, done, false},
    {595, "cuGraphExecEventRecordNodeSetEvent", with_graphs<set_event_node>, done, false},
    {596, "cuGraphExecEventWaitNodeSetEvent", with_graphs<set_event_node>, done, false},
    {714, "cuGraphExecNodeSetParams", with_graphs<set_any_node>, done, false},
    {650, "cuGraphNodeSetEnabled", with_graphs<enable_node>, done, false},
    {523, "cuGraphClone", with_graphs<clone_graph>, done, false},
    {525, "cuGraphAddChildGraphNode", with_graphs<add_child_graph>, done, false},
    {712, "cuGraphAddNode", with_graphs<add_node<AddNode>>, done, false},
    {723, "cuGraphAddNode_v2", with_graphs<add_node<AddNodeWithEdges>>, done, false},
    {521, "cuGraphKernelNodeSetParams", with_graphs<change_node>, done, false},
    {691, "cuGraphKernelNodeSetParams_v2", with_graphs<change_node>, done, false},
    {520, "cuGraphMemcpyNodeSetParams", with_graphs<change_node>, done, false},
    {508, "cuGraphMemsetNodeSetParams", with_graphs<change_node>, done, false},
    {713, "cuGraphNodeSetParams", with_graphs<change_node>, done, false},
    {522, "cuGraphDestroyNode", with_graphs<destroy_node>, first, false},
    {516, "cuGraphExecDestroy", with_graphs<destroy_executable>, first, false},
    {517, "cuGraphDestroy", with_graphs<destroy_graph>, first, false},
};

constexpr std::size_t most_ids = 1024;

struct ById {
    const WatchedCall *calls[most_ids] = {};
    ById() {
        for (const WatchedCall &call : table)
            calls[call.id] = &call;
    }
};

} // namespace

WatchedCalls watched_calls() { return {table, sizeof(table) / sizeof(table[0])}; }

const WatchedCall *watched_call(std::uint32_t id) {
    static const ById by_id;
    return id < most_ids ? by_id.calls[id] : nullptr;
}

void tell_cubin(watch::DriverWatch &watch, const ModuleDescription &module) {
    LoadingCall &loading = loading_call();
    if (loading.active)
        loading.cubins.push_back(module.number);
    watch.launches().cubin_loaded(
        {module.number, reinterpret_cast<const std::byte *>(module.cubin), module.cubin_size});
}

} // namespace tcuda::cupti
