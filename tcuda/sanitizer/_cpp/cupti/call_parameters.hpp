// The parameters of the driver's calls, as CUPTI gives them.
#pragma once

#include <cstddef>
#include <cstdint>

#include "driver/libcuda_types.hpp"
#include "sanitizer/_cpp/watch/driver_watch.hpp"

namespace tcuda::cupti {

// Each struct has the parameters of the calls that its comment names, as the driver passes them.

struct LaunchKernel { // cuLaunchKernel, cuLaunchCooperativeKernel, whose list ends with `parameters`
    libcuda::Function function;
    unsigned grid[3], block[3], shared_memory;
    Stream stream;
    void **parameters;
    void **extra;
};
struct LaunchKernelEx {
    const libcuda::LaunchConfiguration *configuration;
    libcuda::Function function;
    void **parameters;
    void **extra;
};
struct LaunchParameters { // CUDA_LAUNCH_PARAMS
    libcuda::Function function;
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
    libcuda::DevicePointer target;
    libcuda::Context target_context;
    libcuda::DevicePointer source;
    libcuda::Context source_context;
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
    const libcuda::DevicePointer *targets, *sources;
    const std::size_t *sizes;
    std::size_t count;
    const void *attributes;
    const std::size_t *attribute_places;
    std::size_t attribute_count;
    Stream stream;
};
struct CopyBatchWithFailure { // cuMemcpyBatchAsync
    const libcuda::DevicePointer *targets, *sources;
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
    libcuda::DevicePointer pointer; // or the array
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
    libcuda::DevicePointer target;
    Value value;
    std::size_t count;
    Stream stream;
};
template <typename Value> struct SetRows { // cuMemsetD2D8, cuMemsetD2D16, cuMemsetD2D32
    libcuda::DevicePointer target;
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
    libcuda::DevicePointer address;
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
    libcuda::Context context;
};

struct Free {
    libcuda::DevicePointer address;
};
struct AllocateAsync {
    const libcuda::DevicePointer *address;
    std::size_t size;
    Stream stream;
};
struct AllocateFromPoolAsync {
    const libcuda::DevicePointer *address;
    std::size_t size;
    std::uintptr_t pool;
    Stream stream;
};
struct FreeAsync {
    libcuda::DevicePointer address;
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
    const libcuda::GraphExec *executable;
    libcuda::Graph graph;
};
struct UpdateGraph {
    libcuda::GraphExec executable;
    libcuda::Graph graph;
};
struct LaunchGraph {
    libcuda::GraphExec executable;
    Stream stream;
};
struct DestroyGraph {
    libcuda::Graph graph;
};
struct SetNode {
    libcuda::GraphExec executable;
    libcuda::GraphNode node;
    const void *parameters;
};
struct EnableNode {
    libcuda::GraphExec executable;
    libcuda::GraphNode node;
    unsigned enabled;
};
struct NodeParameters { // CUgraphNodeParams
    int type, reserved[3];
    std::byte of_type[1];
};
struct ConditionalNodeParameters { // CUDA_CONDITIONAL_NODE_PARAMS
    std::uint64_t handle;
    int kind;
    unsigned count;
    const libcuda::Graph *bodies;
    libcuda::Context context;
};
struct MemcpyNodeParameters { // CUDA_MEMCPY_NODE_PARAMS
    int flags, reserved;
    libcuda::Context context;
    libcuda::MemcpyNode copy;
};

struct CloneGraph {
    const libcuda::Graph *clone;
    libcuda::Graph original;
};
struct AddChildGraph {
    const libcuda::GraphNode *node;
    libcuda::Graph graph;
    const libcuda::GraphNode *dependencies;
    std::size_t dependency_count;
    libcuda::Graph child;
};
struct AddNode {
    const libcuda::GraphNode *node;
    libcuda::Graph graph;
    const libcuda::GraphNode *dependencies;
    std::size_t dependency_count;
    const NodeParameters *parameters;
};
struct AddNodeWithEdges { // cuGraphAddNode_v2
    const libcuda::GraphNode *node;
    libcuda::Graph graph;
    const libcuda::GraphNode *dependencies;
    const void *edges;
    std::size_t dependency_count;
    const NodeParameters *parameters;
};
struct OnNode { // the calls whose first parameter is a node
    libcuda::GraphNode node;
};

// CU_GRAPH_NODE_TYPE_KERNEL, CU_GRAPH_NODE_TYPE_WAIT_EVENT and CU_GRAPH_NODE_TYPE_EVENT_RECORD
constexpr int node_type_kernel = 0, node_type_wait_event = 6, node_type_record_event = 7;
constexpr unsigned event_interprocess = 4;                          // CU_EVENT_INTERPROCESS
constexpr int memory_host = 1, memory_device = 2, memory_array = 3; // CUmemorytype
constexpr int operand_pointer = 1;                                  // CU_MEMCPY_OPERAND_TYPE_POINTER

} // namespace tcuda::cupti
