// A libcuda.so.1 with two devices or more, and without calls for graphs, which records the names of all calls.
#include <cstddef>
#include <cstring>
#include <initializer_list>
#include <string>

static std::string calls;

#define CALL(name, parameters, body)                                                                                   \
    extern "C" int name parameters {                                                                                   \
        calls += #name " ";                                                                                            \
        body;                                                                                                          \
        return 0;                                                                                                      \
    }
#define UNUSED(name) CALL(name, (), )

using Pointer = unsigned long long;
static int mode_of_thread = 0;
static std::size_t current_context = 7;
static std::string launch;
static int status_of_launches = 0;

// With virtual memory, the devices have memory that can be exported, too. A refusal is the status for such memory.
static bool virtual_memory = false;
static int refusal = 0;
static std::string handle_types;
extern "C" void stub_virtual_memory(int status) { virtual_memory = true, refusal = status; }
extern "C" const char *stub_handle_types() { return handle_types.c_str(); }

static void note(std::size_t number) { launch += std::to_string(number) + " "; }

static std::string log; // the calls of transfers, with their arguments and the current context
static std::string failing;
static int calls_until_failure = 0; // of the calls of transfers
static std::size_t last_event = 0;
static std::size_t host_allocations = 0;

static bool fails() { return calls_until_failure != 0 && --calls_until_failure == 0; }

static int noted(const char *name, std::initializer_list<std::size_t> arguments) {
    log += name;
    for (const std::size_t argument : arguments)
        log += " " + std::to_string(argument);
    log += " in " + std::to_string(current_context) + "\n";
    return fails() || failing == name ? 719 : 0;
}

extern "C" const char *stub_log() { return log.c_str(); }
extern "C" void stub_forget_log() { log.clear(); }
extern "C" void stub_fail(const char *name) { failing = name; }
// Lets the call of transfers of this number fail, counted from 1; 0 lets none fail.
extern "C" void stub_fail_call(int number) { calls_until_failure = number; }
// Whether the call that was to fail has not been made.
extern "C" int stub_waits_for_failure() { return calls_until_failure; }
extern "C" const char *stub_calls() { return calls.c_str(); }
extern "C" void stub_forget() { calls.clear(); }
extern "C" int stub_mode() { return mode_of_thread; }
extern "C" void stub_use(std::size_t context) { current_context = context; }
extern "C" void stub_fail_launches(int status) { status_of_launches = status; }
// The last launch of a kernel with the parameters (pointer, double).
extern "C" const char *stub_launch() { return launch.c_str(); }

CALL(cuInit, (unsigned), )
static int devices = 2;
extern "C" void stub_devices(int count) { devices = count; }
CALL(cuDeviceGetCount, (int *count), *count = devices)
CALL(cuDeviceGet, (int *device, int ordinal), if (ordinal >= devices) return 101; *device = 7 + ordinal)
CALL(cuDeviceGetAttribute, (int *value, int attribute, int),
     *value = virtual_memory && (attribute == 102 || attribute == 103))
// With links between the devices, both devices can be used; without links, only the device 1.
static int have_links = 0;
static int active_devices = 0;
extern "C" void stub_links(int linked) { have_links = linked; }
extern "C" void stub_activate(int device) { active_devices |= 1 << device; }
CALL(cuDeviceCanAccessPeer, (int *can, int, int), *can = have_links)
CALL(cuDevicePrimaryCtxGetState, (int device, unsigned *, int *active), *active = active_devices >> device & 1)
CALL(cuDevicePrimaryCtxRetain, (void **context, int device),
     if (fails()) return 719;
     *context = reinterpret_cast<void *>(std::size_t(device)))
CALL(cuDeviceGetUuid_v2, (char *uuid, int device), std::memset(uuid, device, 16))
CALL(cuCtxGetDevice, (int *device), *device = static_cast<int>(current_context))
CALL(cuCtxGetCurrent, (void **context), *context = reinterpret_cast<void *>(current_context))
CALL(cuCtxPushCurrent_v2, (void *context),
     if (have_links == 0 && context != reinterpret_cast<void *>(8)) return 201)
CALL(cuCtxPopCurrent_v2, (void **), )
CALL(cuCtxGetStreamPriorityRange, (int *least, int *greatest), *least = 0; *greatest = -5)
CALL(cuThreadExchangeStreamCaptureMode, (int *mode), std::swap(*mode, mode_of_thread))
CALL(cuEventRecordWithFlags, (std::size_t event, std::size_t stream, unsigned flags),
     if (event != 5 || stream != 6 || flags != 1) return 400)
CALL(cuStreamCreateWithPriority, (std::size_t *stream, unsigned flags, int priority),
     if (flags > 1) return 1;
     *stream = std::size_t(16 - priority))
CALL(cuStreamGetFlags, (std::size_t stream, unsigned *flags), if (stream == 9) return 400; *flags = 1)
CALL(cuStreamGetPriority, (std::size_t stream, int *priority), if (stream == 9) return 400;
     *priority = 16 - static_cast<int>(stream))
CALL(cuGraphDebugDotPrint, (std::size_t graph, const char *path, unsigned flags),
     if (graph != 7 || path != std::string("graph.dot") || flags != 1) return 304)
CALL(cuMemAlloc_v2, (Pointer * pointer, std::size_t size), if (size == 512) return 2; *pointer = 0x10000000)
CALL(cuMemGetInfo_v2, (std::size_t *free, std::size_t *total), *free = *total = std::size_t(1) << 30)
CALL(cuMemGetAllocationGranularity, (std::size_t * bytes, const void *, int), *bytes = 2 << 20)
CALL(cuMemAddressReserve, (Pointer * pointer, std::size_t, std::size_t, Pointer, Pointer), *pointer = 0x40000000)
CALL(cuMemCreate, (Pointer * physical, std::size_t, const int *properties, Pointer),
     handle_types += std::to_string(properties[1]) + " ";
     if (properties[1] != 0 && refusal != 0) return refusal;
     *physical = 5)
// A kernel of the stub is a small number, whose launch is noted, or the address of a function of the host, which gets the
// addresses of the arguments and the number of blocks.
CALL(cuLaunchKernel,
     (std::size_t function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
      unsigned shared, std::size_t stream, void **arguments, void **),
     if (fails()) return 719;
     if (function > 4096) return reinterpret_cast<int (*)(void **, unsigned)>(function)(arguments, gx);
     if (status_of_launches != 0) return status_of_launches;
     launch.clear();
     note(function); note(gx); note(gy); note(gz); note(bx); note(by); note(bz); note(shared); note(stream);
     launch += std::to_string(*static_cast<Pointer *>(arguments[0])) + " ";
     launch += std::to_string(*static_cast<double *>(arguments[1])))
#ifndef WITHOUT_CONFIGURED_LAUNCHES
struct Configuration {
    unsigned grid[3], block[3], shared;
    std::size_t stream;
    void *attributes;
    unsigned attribute_count;
};
CALL(cuLaunchKernelEx, (const Configuration *with, std::size_t function, void **arguments, void **extra),
     if (with->attribute_count != 0) return 1;
     return cuLaunchKernel(function, with->grid[0], with->grid[1], with->grid[2], with->block[0], with->block[1],
                           with->block[2], with->shared, with->stream, arguments, extra))
#endif
CALL(cuCtxSetCurrent, (std::size_t context), if (fails()) return 719; current_context = context)
CALL(cuStreamCreate, (std::size_t *stream, unsigned flags),
     *stream = 100 + current_context;
     return noted("stream", {flags}))
CALL(cuEventCreate, (std::size_t *event, unsigned), *event = ++last_event; return noted("create", {*event}))
CALL(cuEventRecord, (std::size_t event, std::size_t stream), return noted("record", {event, stream}))
CALL(cuStreamWaitEvent, (std::size_t stream, std::size_t event, unsigned), return noted("wait", {stream, event}))
CALL(cuStreamSynchronize, (std::size_t stream), return noted("synchronize", {stream}))
CALL(cuMemcpyAsync, (Pointer target, Pointer source, std::size_t bytes, std::size_t stream),
     return noted("copy", {target, source, bytes, stream}))
CALL(cuMemcpyHtoDAsync_v2, (Pointer target, std::size_t source, std::size_t bytes, std::size_t stream),
     return noted("upload", {target, source, bytes, stream}))
CALL(cuMemcpyPeerAsync,
     (Pointer target, std::size_t to, Pointer source, std::size_t from, std::size_t bytes, std::size_t stream),
     return noted("copy_peer", {target, to, source, from, bytes, stream}))
struct RowEnd {
    std::size_t x, y;
    int type;
    std::size_t host, device, array, pitch;
};
struct Rows {
    RowEnd source, target;
    std::size_t width, height;
};
CALL(cuMemcpy2DAsync_v2, (const Rows *rows, std::size_t stream),
     if (rows->source.type != 4 || rows->target.type != 4) return 1;
     return noted("copy_rows", {rows->target.device, rows->target.pitch, rows->source.device, rows->source.pitch,
                                rows->width, rows->height, stream}))
// Green contexts of a device with 132 multiprocessors, in groups of 8. The contexts have numbers from 201 on.
struct Resource {
    int type;
    unsigned char padding[92];
    unsigned numbers[10];
    void *next;
};
static std::size_t last_green_context = 200;
CALL(cuDeviceGetDevResource, (int device, Resource *resource, int type),
     *resource = {};
     resource->type = type;
     resource->numbers[0] = type == 1 ? 132 : unsigned(device);
     resource->numbers[1] = type == 1 ? 8 : 32;
     resource->numbers[2] = type == 1 ? 8 : 0;
     return noted("resource", {std::size_t(device), std::size_t(type)}))
CALL(cuDevSmResourceSplitByCount,
     (Resource *groups, unsigned *count, const Resource *whole, Resource *, unsigned flags, unsigned least),
     if (*count != 1 || whole->type != 1) return 1;
     if (least > 128) *count = 0;
     *groups = *whole;
     groups->numbers[0] = (least + 7) / 8 * 8;
     return noted("split", {flags, least}))
CALL(cuDevResourceGenerateDesc, (std::size_t *descriptor, const Resource *resources, unsigned count),
     *descriptor = 300;
     std::string types;
     for (unsigned i = 0; i < count; ++i)
         types += std::to_string(resources[i].type) + ":" + std::to_string(resources[i].numbers[0]) + "," +
                  std::to_string(resources[i].numbers[1]) + "," + std::to_string(resources[i].numbers[2]) + " ";
     log += "with " + types + "\n";
     return noted("describe", {count}))
CALL(cuGreenCtxCreate, (std::size_t *context, std::size_t descriptor, int device, unsigned flags),
     *context = ++last_green_context;
     return noted("green", {*context, descriptor, std::size_t(device), flags}))
CALL(cuGreenCtxDestroy, (std::size_t context), return noted("green_destroy", {context}))
CALL(cuGreenCtxStreamCreate, (std::size_t *stream, std::size_t context, unsigned flags, int priority),
     *stream = context + 100;
     return noted("green_stream", {context, flags, std::size_t(priority)}))
CALL(cuStreamDestroy_v2, (std::size_t stream), return noted("stream_destroy", {stream}))
static int unfinished = 0;
extern "C" void stub_keep_busy(int busy) { unfinished = busy; }
CALL(cuMemHostAlloc, (std::size_t *address, std::size_t bytes, unsigned flags),
     *address = 0x20000000 + 0x1000000 * ++host_allocations;
     return noted("host_allocate", {bytes, flags}))
CALL(cuMemFreeHost, (std::size_t address), return noted("host_free", {address}))
CALL(cuMemHostRegister_v2, (std::size_t, std::size_t bytes, unsigned flags), return noted("register", {bytes, flags}))
CALL(cuMemHostUnregister, (std::size_t), return noted("unregister", {}))
#ifndef WITHOUT_CONTEXT_EVENTS
CALL(cuCtxRecordEvent, (std::size_t context, std::size_t event), return noted("record_context", {context, event}))
#endif
CALL(cuEventQuery, (std::size_t event), noted("query", {event}); return unfinished ? 600 : 0)
#ifdef WITH_GRAPHS
// Every graph is one copy from memory of the host to a device, as CUDA describes the copy.
struct CopyEnd {
    std::size_t x, y, z, level;
    int type;
    std::size_t host, device, array, reserved, pitch, height;
};
CALL(cuGraphGetNodes, (std::size_t, std::size_t *nodes, std::size_t *count), if (nodes != nullptr) *nodes = 5; *count = 1)
CALL(cuGraphNodeGetType, (std::size_t, int *type), *type = 1)
CALL(cuGraphKernelNodeGetParams_v2, (std::size_t, void *), return 1)
CALL(cuGraphMemcpyNodeGetParams, (std::size_t, CopyEnd *ends), ends[0].type = 1; ends[0].host = 0x70000;
     ends[0].device = 0x71000; ends[1].type = 2; ends[1].host = 0x81000; ends[1].device = 0x80000)
UNUSED(cuStreamGetCaptureInfo_v2)
UNUSED(cuStreamUpdateCaptureDependencies)
UNUSED(cuStreamBeginCapture_v2)
UNUSED(cuStreamEndCapture)
UNUSED(cuGraphDestroy)
UNUSED(cuGraphInstantiateWithFlags)
UNUSED(cuGraphExecDestroy)
UNUSED(cuGraphLaunch)
UNUSED(cuGraphMemsetNodeGetParams)
UNUSED(cuGraphChildGraphNodeGetGraph)
UNUSED(cuFuncGetParamInfo)
UNUSED(cuKernelGetParamInfo)
UNUSED(cuGraphAddKernelNode_v2)
UNUSED(cuGraphExecKernelNodeSetParams_v2)
#endif
UNUSED(cuCtxSynchronize)
UNUSED(cuEventDestroy_v2)
UNUSED(cuEventSynchronize)
UNUSED(cuMemAddressFree)
UNUSED(cuMemFree_v2)
UNUSED(cuMemMap)
UNUSED(cuMemExportToShareableHandle)
UNUSED(cuMemGetAddressRange_v2)
UNUSED(cuMemImportFromShareableHandle)
UNUSED(cuMemRelease)
struct Access {
    int type, device, flags;
};
CALL(cuMemSetAccess, (Pointer, std::size_t, const Access *access, std::size_t count),
     std::string devices;
     for (std::size_t i = 0; i < count; ++i)
         devices += "," + std::to_string(access[i].device);
     calls.pop_back();
     calls += devices.empty() ? " " : ":" + devices.substr(1) + " ")
UNUSED(cuMemUnmap)
UNUSED(cuStreamGetCaptureInfo)
UNUSED(cuStreamIsCapturing)
UNUSED(cuStreamQuery)
