// The types, the structures and the constants of cuda.h that the core uses. Sizes, layouts and values are those of
// cuda.h. A handle of the driver is an opaque pointer, which the core keeps as an integer.
#pragma once

#include <cstddef>
#include <cstdint>

namespace tcuda::libcuda {

using Device = int;                       // CUdevice
using DevicePointer = unsigned long long; // CUdeviceptr
using Context = std::uintptr_t;           // CUcontext
using Stream = std::uintptr_t;            // CUstream
using Event = std::uintptr_t;             // CUevent
using Function = std::uintptr_t;          // CUfunction
using Graph = std::uintptr_t;             // CUgraph
using GraphExec = std::uintptr_t;         // CUgraphExec
using GraphNode = std::uintptr_t;         // CUgraphNode
using Physical = std::uint64_t;           // CUmemGenericAllocationHandle
using CaptureId = std::uint64_t;          // cuuint64_t
using GreenContext = std::uintptr_t;      // CUgreenCtx
using ResourceDescriptor = std::uintptr_t; // CUdevResourceDesc
using Module = std::uintptr_t;            // CUmodule
using ConditionalHandle = std::uint64_t;  // CUgraphConditionalHandle

static_assert(sizeof(std::uintptr_t) == sizeof(void *) && sizeof(DevicePointer) == sizeof(std::uint64_t));

// CUuuid
struct Uuid {
    char bytes[16];
};

// CUmemLocation
struct Location {
    int type, id;
};

// CUmemAllocationProp
struct AllocationProperties {
    int type, requested_handle_types;
    Location location;
    void *win32_metadata;
    unsigned char compression, gpu_direct_rdma;
    unsigned short usage;
    unsigned char reserved[4];
};

// CUmemAccessDesc
struct AccessDescription {
    Location location;
    int flags;
};

// CUDA_KERNEL_NODE_PARAMS_v2
struct KernelNode {
    Function function;
    unsigned grid[3], block[3], shared_memory;
    void **parameters;
    void **extra;
    std::uintptr_t kernel, context;
};

// CUlaunchConfig
struct LaunchConfiguration {
    unsigned grid[3], block[3], shared_memory;
    Stream stream;
    void *attributes;
    unsigned attribute_count;
};

// One end of a copy in CUDA_MEMCPY3D
struct MemcpyEnd {
    std::size_t x, y, z, level;
    int memory_type;
    std::uintptr_t host, device, array, reserved;
    std::size_t pitch, height;
};

// CUDA_MEMCPY3D
struct MemcpyNode {
    MemcpyEnd source, target;
    std::size_t width, height, depth;
};

// One end of a copy in CUDA_MEMCPY2D
struct RowCopyEnd {
    std::size_t x, y;
    int memory_type;
    std::uintptr_t host, device, array;
    std::size_t pitch;
};

// CUDA_MEMCPY2D
struct RowCopy {
    RowCopyEnd source, target;
    std::size_t width, height;
};

// CUDA_MEMSET_NODE_PARAMS_v2
struct MemsetNode {
    std::uintptr_t target;
    std::size_t pitch;
    unsigned value, element_size;
    std::size_t width, height;
    Context context;
};

// CUDA_HOST_NODE_PARAMS
struct HostNode {
    void (*function)(void *data);
    void *data;
};

// CUdevSmResource
struct Multiprocessors {
    unsigned count, least, alignment, flags;
};

// CUdevWorkqueueConfigResource
struct WorkQueues {
    Device device;
    unsigned limit;
    int scope;
};

// CUdevResource
struct DeviceResource {
    int type;
    unsigned char padding[92];
    union {
        Multiprocessors multiprocessors;
        WorkQueues work_queues;
        unsigned char oversize[40];
    };
    DeviceResource *next;
};

static_assert(sizeof(DeviceResource) == 144);

// CUgraphNodeParams with the member of the union for conditional nodes, CUDA_CONDITIONAL_NODE_PARAMS
struct NodeParameters {
    int type, reserved0[3];
    ConditionalHandle handle;
    int kind;
    unsigned body_count;
    Graph *bodies; // an array of the driver, which lives as long as the node
    Context context;
    char rest_of_union[29 * 8 - 32];
    std::int64_t reserved2;
};
static_assert(sizeof(NodeParameters) == 256);

// CUgraphExecUpdateResultInfo
struct UpdateResult {
    int result;
    GraphNode node, from; // the node that cannot be updated
};

// CUgraphEdgeData
struct EdgeData {
    unsigned char from_port, to_port, type, reserved[5];
};

constexpr int allocation_type_pinned = 1;           // CU_MEM_ALLOCATION_TYPE_PINNED
constexpr int location_type_device = 1;             // CU_MEM_LOCATION_TYPE_DEVICE
constexpr int access_read_write = 3;                // CU_MEM_ACCESS_FLAGS_PROT_READWRITE
constexpr int granularity_recommended = 1;          // CU_MEM_ALLOC_GRANULARITY_RECOMMENDED
inline void *const launch_parameters_end = nullptr;                               // CU_LAUNCH_PARAM_END
inline void *const launch_parameters_buffer = reinterpret_cast<void *>(0x01);     // CU_LAUNCH_PARAM_BUFFER_POINTER
inline void *const launch_parameters_size = reinterpret_cast<void *>(0x02);       // CU_LAUNCH_PARAM_BUFFER_SIZE
constexpr int memory_type_host = 1;                  // CU_MEMORYTYPE_HOST
constexpr std::uintptr_t least_address = 1 << 16;    // no driver maps memory below: a smaller number is a size
constexpr int memory_type_unified = 4;               // CU_MEMORYTYPE_UNIFIED
constexpr int attribute_multiprocessors = 16;       // CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT
constexpr int attribute_virtual_memory = 102;       // CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED
constexpr int attribute_rdma_with_virtual = 110;    // CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_WITH_CUDA_VMM_SUPPORTED
constexpr int attribute_file_descriptors = 103;     // CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED
constexpr int attribute_host_node = 134;            // CU_DEVICE_ATTRIBUTE_HOST_NUMA_ID, driver 12.2
constexpr int handle_type_file_descriptor = 1;      // CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR
constexpr unsigned host_memory_portable = 1;        // CU_MEMHOSTALLOC_PORTABLE, CU_MEMHOSTREGISTER_PORTABLE
constexpr unsigned event_disable_timing = 2;        // CU_EVENT_DISABLE_TIMING
constexpr unsigned stream_non_blocking = 1;         // CU_STREAM_NON_BLOCKING
constexpr int capture_mode_relaxed = 2;             // CU_STREAM_CAPTURE_MODE_RELAXED
constexpr int capture_status_none = 0;              // CU_STREAM_CAPTURE_STATUS_NONE
constexpr unsigned add_capture_dependencies = 0;    // CU_STREAM_ADD_CAPTURE_DEPENDENCIES
constexpr int node_type_conditional = 13;           // CU_GRAPH_NODE_TYPE_CONDITIONAL
constexpr unsigned set_capture_dependencies = 1;    // CU_STREAM_SET_CAPTURE_DEPENDENCIES
constexpr int capture_status_invalidated = 2;       // CU_STREAM_CAPTURE_STATUS_INVALIDATED
constexpr int node_type_kernel = 0;                 // CU_GRAPH_NODE_TYPE_KERNEL
constexpr int node_type_memcpy = 1;                 // CU_GRAPH_NODE_TYPE_MEMCPY
constexpr int node_type_memset = 2;                 // CU_GRAPH_NODE_TYPE_MEMSET
constexpr int resource_multiprocessors = 1;         // CU_DEV_RESOURCE_TYPE_SM
constexpr int resource_work_queues = 1000;          // CU_DEV_RESOURCE_TYPE_WORKQUEUE_CONFIG
constexpr unsigned green_context_default_stream = 1; // CU_GREEN_CTX_DEFAULT_STREAM
constexpr int invalid_resource_configuration = 915; // CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION
constexpr int node_type_host = 3;                   // CU_GRAPH_NODE_TYPE_HOST
constexpr int node_type_graph = 4;                  // CU_GRAPH_NODE_TYPE_GRAPH
constexpr int node_type_empty = 5;                  // CU_GRAPH_NODE_TYPE_EMPTY
constexpr int node_type_wait = 6;                   // CU_GRAPH_NODE_TYPE_WAIT_EVENT
constexpr int node_type_record = 7;                 // CU_GRAPH_NODE_TYPE_EVENT_RECORD

} // namespace tcuda::libcuda
