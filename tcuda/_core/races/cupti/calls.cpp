#include "races/cupti/calls.hpp"

#include "races/cupti/copy_calls.hpp"
#include "races/cupti/event_calls.hpp"
#include "races/cupti/fill_calls.hpp"
#include "races/cupti/graph_calls.hpp"
#include "races/cupti/launch_calls.hpp"
#include "races/cupti/memory_calls.hpp"
#include "races/cupti/module_calls.hpp"
#include "races/cupti/stream_calls.hpp"

namespace tcuda::cupti {
namespace {

constexpr auto host = Memory::host, device = Memory::device, unified = Memory::unified;
constexpr bool blocking = true, asynchronous = false;
constexpr std::uint8_t done = after_success, first = at_entry;

// The variants _ptsz and _ptds take the stream 0 for the per-thread default stream. Variants with addresses of 32 bits
// are left out, because no program of 64 bits can call them.
constexpr WatchedCall table[] = {
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
    {598, "cuMemAllocAsync", allocate_async, done, false},
    {599, "cuMemAllocAsync_ptsz", allocate_async, done, true},
    {611, "cuMemAllocFromPoolAsync", allocate_from_pool_async, done, false},
    {612, "cuMemAllocFromPoolAsync_ptsz", allocate_from_pool_async, done, true},
    {600, "cuMemFreeAsync", free_async, first, false},
    {601, "cuMemFreeAsync_ptsz", free_async, first, true},
    {39, "cuMemHostAlloc", allocate_host, done, false},
    {271, "cuMemHostAlloc_v2", allocate_host, done, false},
    {294, "cuMemAllocHost_v2", allocate_host, done, false},
    {301, "cuMemHostRegister", register_host, done, false},
    {379, "cuMemHostRegister_v2", register_host, done, false},
    {38, "cuMemFreeHost", release_host, first, false},
    {302, "cuMemHostUnregister", release_host, first, false},

    {18, "cuModuleLoad", load_module_file, done, false},
    {19, "cuModuleLoadData", load_module, done, false},
    {20, "cuModuleLoadDataEx", load_module, done, false},
    {21, "cuModuleLoadFatBinary", load_module, done, false},
    {22, "cuModuleUnload", unload_module, first, false},
    {678, "cuLibraryLoadData", load_module, done, false},
    {679, "cuLibraryLoadFromFile", load_module_file, done, false},
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
    {712, "cuGraphAddNode", with_graphs<add_node>, done, false},
    {723, "cuGraphAddNode_v2", with_graphs<add_node_with_edges>, done, false},
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
    constexpr ById() {
        for (const WatchedCall &call : table)
            calls[call.id] = &call;
    }
};
constexpr ById by_id; // made by the compiler, so that a callback need not ask whether the table is ready

} // namespace

WatchedCalls watched_calls() { return {table, sizeof(table) / sizeof(table[0])}; }

const WatchedCall *watched_call(std::uint32_t id) {
    return id < most_ids ? by_id.calls[id] : nullptr;
}

} // namespace tcuda::cupti
