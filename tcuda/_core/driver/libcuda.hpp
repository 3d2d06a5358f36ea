// The functions of libcuda.so.1, each with its C type: nothing of CUDA is needed to build.
//
// The library is opened once in a process. The functions are looked up in groups, each when a caller first asks for the
// group, so that a driver that lacks the functions of one group still serves the others. A caller keeps a reference to
// a group: a call then costs one indirect call.
#pragma once

#include <cstddef>
#include <cstdint>

#include "driver/libcuda_types.hpp"
#include "threads/published.hpp"

namespace tcuda::libcuda {

// The address of a function. Throws std::runtime_error if the library cannot be loaded or has no function of that name.
void *find(const char *name);

template <typename Signature> class Call;

// A function of the driver. The result is a status.
template <typename... Arguments> class Call<int(Arguments...)> {
public:
    explicit Call(const char *name) : function_(reinterpret_cast<int (*)(Arguments...)>(find(name))) {}
    int operator()(Arguments... arguments) const { return function_(arguments...); }

private:
    int (*const function_)(Arguments...);
};

// Devices and their contexts
struct ContextCalls {
    Call<int(unsigned flags)> init{"cuInit"};
    Call<int(int *count)> device_count{"cuDeviceGetCount"};
    Call<int(Device *, int ordinal)> device_get{"cuDeviceGet"};
    Call<int(int *value, int attribute, Device)> device_attribute{"cuDeviceGetAttribute"};
    Call<int(int *can, Device, Device peer)> can_access_peer{"cuDeviceCanAccessPeer"};
    Call<int(Context *, Device)> retain_primary{"cuDevicePrimaryCtxRetain"};
    Call<int(Device, unsigned *flags, int *active)> primary_state{"cuDevicePrimaryCtxGetState"};
    Call<int(Context *)> get_current{"cuCtxGetCurrent"};
    Call<int(Device *)> current_device{"cuCtxGetDevice"};
    Call<int(Context)> set_current{"cuCtxSetCurrent"};
    Call<int(Context)> push_current{"cuCtxPushCurrent_v2"};
    Call<int(Context *)> pop_current{"cuCtxPopCurrent_v2"};
    Call<int()> synchronize{"cuCtxSynchronize"};
};

// Memory, virtual memory included
struct MemoryCalls {
    Call<int(DevicePointer *, std::size_t size)> allocate{"cuMemAlloc_v2"};
    Call<int(DevicePointer)> free{"cuMemFree_v2"};
    Call<int(std::size_t *free, std::size_t *total)> get_info{"cuMemGetInfo_v2"};
    Call<int(std::size_t *bytes, const AllocationProperties *, int option)> granularity{
        "cuMemGetAllocationGranularity"};
    Call<int(DevicePointer *, std::size_t size, std::size_t alignment, DevicePointer fixed, unsigned long long flags)>
        address_reserve{"cuMemAddressReserve"};
    Call<int(DevicePointer, std::size_t size)> address_free{"cuMemAddressFree"};
    Call<int(Physical *, std::size_t size, const AllocationProperties *, unsigned long long flags)> create{
        "cuMemCreate"};
    Call<int(Physical)> release{"cuMemRelease"};
    Call<int(DevicePointer, std::size_t size, std::size_t offset, Physical, unsigned long long flags)> map{"cuMemMap"};
    Call<int(DevicePointer, std::size_t size)> unmap{"cuMemUnmap"};
    Call<int(DevicePointer, std::size_t size, const AccessDescription *, std::size_t count)> set_access{
        "cuMemSetAccess"};
    Call<int(DevicePointer *, std::size_t *size, DevicePointer)> address_range{"cuMemGetAddressRange_v2"};
    Call<int(int *descriptor, Physical, int type, unsigned long long flags)> export_handle{
        "cuMemExportToShareableHandle"};
    Call<int(Physical *, std::uintptr_t descriptor, int type)> import_handle{"cuMemImportFromShareableHandle"};
};

// Page-locked memory of the host
struct HostMemoryCalls {
    Call<int(std::uintptr_t *, std::size_t size, unsigned flags)> allocate{"cuMemHostAlloc"};
    Call<int(std::uintptr_t)> free{"cuMemFreeHost"};
    Call<int(std::uintptr_t, std::size_t size, unsigned flags)> lock{"cuMemHostRegister_v2"};
    Call<int(std::uintptr_t)> unlock{"cuMemHostUnregister"};
};

// An event behind all work of a context: a driver of CUDA 12.5 or later has the function.
struct ContextEventCalls {
    Call<int(Context, Event)> record{"cuCtxRecordEvent"};
};

// Streams and events
struct StreamCalls {
    Call<int(Stream)> query{"cuStreamQuery"};
    Call<int(Stream)> synchronize{"cuStreamSynchronize"};
    Call<int(Event *, unsigned flags)> event_create{"cuEventCreate"};
    Call<int(Event, Stream)> event_record{"cuEventRecord"};
    Call<int(Event)> event_query{"cuEventQuery"};
    Call<int(Event)> event_synchronize{"cuEventSynchronize"};
    Call<int(Event)> event_destroy{"cuEventDestroy_v2"};
};

struct FillCalls {
    Call<int(DevicePointer, unsigned char value, std::size_t bytes, Stream)> fill{"cuMemsetD8Async"};
};

// Work on the memory of several devices
struct TransferCalls {
    Call<int(Stream *, unsigned flags)> stream_create{"cuStreamCreate"};
    Call<int(Stream, Event, unsigned flags)> wait_event{"cuStreamWaitEvent"};
    Call<int(DevicePointer target, DevicePointer source, std::size_t bytes, Stream)> copy{"cuMemcpyAsync"};
    Call<int(DevicePointer target, const void *source, std::size_t bytes, Stream)> upload{"cuMemcpyHtoDAsync_v2"};
    Call<int(DevicePointer target, Context, DevicePointer source, Context, std::size_t bytes, Stream)> copy_peer{
        "cuMemcpyPeerAsync"};
    Call<int(const RowCopy *, Stream)> copy_rows{"cuMemcpy2DAsync_v2"};
};

// Captures of streams, with any driver that tcuda supports
struct CaptureCalls {
    Call<int(int *mode)> exchange_mode{"cuThreadExchangeStreamCaptureMode"};
    Call<int(Stream, int *status)> is_capturing{"cuStreamIsCapturing"};
    // The first version, which drivers before that of CUDA 11.3 have too. GraphCalls has the second version.
    Call<int(Stream, int *status, CaptureId *)> info{"cuStreamGetCaptureInfo"};
};

// Graphs and the captures that make them: a driver of CUDA 12.4 or later has these functions.
struct GraphCalls {
    Call<int(Stream, int *status, CaptureId *, Graph *, const GraphNode **dependencies, std::size_t *count)>
        capture_info{"cuStreamGetCaptureInfo_v2"};
    Call<int(Stream, GraphNode *, std::size_t count, unsigned flags)> update_dependencies{
        "cuStreamUpdateCaptureDependencies"};
    Call<int(Stream, int mode)> begin_capture{"cuStreamBeginCapture_v2"};
    Call<int(Stream, Graph *)> end_capture{"cuStreamEndCapture"};
    Call<int(Graph)> destroy{"cuGraphDestroy"};
    Call<int(GraphExec *, Graph, unsigned long long flags)> instantiate{"cuGraphInstantiateWithFlags"};
    Call<int(GraphExec)> destroy_exec{"cuGraphExecDestroy"};
    Call<int(GraphExec, Stream)> launch{"cuGraphLaunch"};
    Call<int(Graph, GraphNode *, std::size_t *count)> nodes{"cuGraphGetNodes"};
    Call<int(GraphNode, int *type)> node_type{"cuGraphNodeGetType"};
    Call<int(GraphNode, KernelNode *)> kernel_node{"cuGraphKernelNodeGetParams_v2"};
    Call<int(GraphNode, MemcpyNode *)> memcpy_node{"cuGraphMemcpyNodeGetParams"};
    Call<int(GraphNode, MemsetNode *)> memset_node{"cuGraphMemsetNodeGetParams"};
    Call<int(GraphNode, Graph *)> child_graph{"cuGraphChildGraphNodeGetGraph"};
    Call<int(Function, std::size_t index, std::size_t *offset, std::size_t *size)> parameter_info{"cuFuncGetParamInfo"};
    Call<int(std::uintptr_t kernel, std::size_t index, std::size_t *offset, std::size_t *size)> kernel_parameter_info{
        "cuKernelGetParamInfo"};
    Call<int(GraphNode *, Graph, const GraphNode *dependencies, std::size_t count, const KernelNode *)> add_kernel_node{
        "cuGraphAddKernelNode_v2"};
    Call<int(GraphExec, GraphNode, const KernelNode *)> set_kernel_node{"cuGraphExecKernelNodeSetParams_v2"};
};

// Contexts with a share of a device: a driver of CUDA 12.5 or later has these functions.
struct GreenContextCalls {
    Call<int(Device, DeviceResource *, int type)> device_resource{"cuDeviceGetDevResource"};
    Call<int(DeviceResource *groups, unsigned *count, const DeviceResource *, DeviceResource *rest, unsigned flags,
             unsigned least)>
        split{"cuDevSmResourceSplitByCount"};
    Call<int(ResourceDescriptor *, DeviceResource *, unsigned count)> describe{"cuDevResourceGenerateDesc"};
    Call<int(GreenContext *, ResourceDescriptor, Device, unsigned flags)> create{"cuGreenCtxCreate"};
    Call<int(GreenContext)> destroy{"cuGreenCtxDestroy"};
    Call<int(Stream *, GreenContext, unsigned flags, int priority)> create_stream{"cuGreenCtxStreamCreate"};
    Call<int(Stream)> destroy_stream{"cuStreamDestroy_v2"};
};

// Conditional nodes: a driver of CUDA 12.4 or later has these functions.
struct ConditionalCalls {
    Call<int(ConditionalHandle *, Graph, Context, unsigned value, unsigned flags)> create_handle{
        "cuGraphConditionalHandleCreate"};
    Call<int(GraphNode *, Graph, const GraphNode *dependencies, std::size_t count, NodeParameters *)> add_node{
        "cuGraphAddNode"};
    Call<int(Stream, Graph, const GraphNode *dependencies, const EdgeData *, std::size_t count, int mode)>
        begin_capture_to_graph{"cuStreamBeginCaptureToGraph"};
};

// Modules of kernels
struct ModuleCalls {
    Call<int(Module *, const void *image)> load{"cuModuleLoadData"};
    Call<int(Function *, Module, const char *name)> function{"cuModuleGetFunction"};
};

// The work and the dependencies of the nodes of a graph. A driver of CUDA 12.4 or later has these functions.
struct GraphNodeCalls {
    Call<int(Graph, GraphNode *from, GraphNode *to, EdgeData *, std::size_t *count)> edges{"cuGraphGetEdges_v2"};
    Call<int(const char **name, Function)> function_name{"cuFuncGetName"};
    Call<int(const char **name, std::uintptr_t kernel)> kernel_name{"cuKernelGetName"};
    Call<int(GraphNode, Event *)> recorded_event{"cuGraphEventRecordNodeGetEvent"};
    Call<int(GraphNode, Event *)> awaited_event{"cuGraphEventWaitNodeGetEvent"};
};

// Changes of the nodes of graphs and of executable graphs. A driver of CUDA 12.4 or later has these functions.
struct GraphChangeCalls {
    Call<int(GraphNode, const KernelNode *)> set_kernel_node{"cuGraphKernelNodeSetParams_v2"};
    Call<int(GraphNode, const MemcpyNode *)> set_memcpy_node{"cuGraphMemcpyNodeSetParams"};
    Call<int(GraphNode, const MemsetNode *)> set_memset_node{"cuGraphMemsetNodeSetParams"};
    Call<int(GraphExec, Graph, UpdateResult *)> update{"cuGraphExecUpdate_v2"};
    Call<int(GraphExec, GraphNode, unsigned enabled)> set_enabled{"cuGraphNodeSetEnabled"};
    Call<int(GraphExec, GraphNode, unsigned *enabled)> get_enabled{"cuGraphNodeGetEnabled"};
};

// Graphs that a program makes itself. A driver of CUDA 12.4 or later has these functions.
struct LoneNodeCalls {
    Call<int(Graph *, unsigned flags)> create{"cuGraphCreate"};
    Call<int(GraphNode *, Graph, const GraphNode *dependencies, std::size_t count, const MemcpyNode *, Context)>
        add_memcpy{"cuGraphAddMemcpyNode"};
    Call<int(GraphNode *, Graph, const GraphNode *dependencies, std::size_t count, const MemsetNode *, Context)>
        add_memset{"cuGraphAddMemsetNode"};
    Call<int(GraphNode *, Graph, const GraphNode *dependencies, std::size_t count, const HostNode *)> add_host{
        "cuGraphAddHostNode"};
    Call<int(GraphNode *, Graph, const GraphNode *dependencies, std::size_t count)> add_empty{"cuGraphAddEmptyNode"};
    Call<int(GraphNode *, Graph, const GraphNode *dependencies, std::size_t count, Event)> add_record{
        "cuGraphAddEventRecordNode"};
    Call<int(GraphNode *, Graph, const GraphNode *dependencies, std::size_t count, Event)> add_wait{
        "cuGraphAddEventWaitNode"};
    Call<int(GraphNode, HostNode *)> host_node{"cuGraphHostNodeGetParams"};
    Call<int(GraphNode target, GraphNode source)> copy_attributes{"cuGraphKernelNodeCopyAttributes"};
};

// The numbers by which profilers name graphs and nodes: a driver of CUDA 13.1 or later has these functions.
struct GraphNumberCalls {
    Call<int(GraphExec, unsigned *number)> executable{"cuGraphExecGetId"};
    Call<int(GraphNode, unsigned long long *number)> node{"cuGraphNodeGetToolsId"};
};

// Launches of kernels
struct KernelCalls {
    Call<int(Function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x, unsigned block_y,
             unsigned block_z, unsigned shared_memory, Stream, void **parameters, void **extra)>
        launch{"cuLaunchKernel"};
};

// Launches of kernels with a configuration: a driver of CUDA 11.8 or later has the function.
struct ConfiguredLaunchCalls {
    Call<int(const LaunchConfiguration *, Function, void **parameters, void **extra)> launch{"cuLaunchKernelEx"};
};

// Functions for calls of the CUDA runtime that CuPy lacks: a driver of CUDA 11.4 or later has them.
struct SupplementCalls {
    Call<int(Uuid *, Device)> device_uuid{"cuDeviceGetUuid_v2"};
    Call<int(int *least, int *greatest)> stream_priority_range{"cuCtxGetStreamPriorityRange"};
    Call<int(Event, Stream, unsigned flags)> event_record_with_flags{"cuEventRecordWithFlags"};
    Call<int(Stream *, unsigned flags, int priority)> stream_create_with_priority{"cuStreamCreateWithPriority"};
    Call<int(Stream, unsigned *flags)> stream_flags{"cuStreamGetFlags"};
    Call<int(Stream, int *priority)> stream_priority{"cuStreamGetPriority"};
    Call<int(Graph, const char *path, unsigned flags)> graph_dot_print{"cuGraphDebugDotPrint"};
};

// The functions of a group. Throws std::runtime_error that names the first function that cannot be found.
template <typename Calls> const Calls &calls() {
    static Published<const Calls> found;
    return found.get();
}

} // namespace tcuda::libcuda
