// The functions of libcuda for graphs and captures; types, values and layouts as cuda.h has them.
#pragma once

#include <dlfcn.h>

#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>

namespace tcuda {

struct KernelNode {
    std::uintptr_t function;
    unsigned grid[3], block[3], shared_memory;
    void **parameters;
    void **extra;
    std::uintptr_t kernel, context;
};

struct MemcpyEnd {
    std::size_t x, y, z, level;
    int memory_type;
    std::uintptr_t host, device, array, reserved;
    std::size_t pitch, height;
};
struct MemcpyNode {
    MemcpyEnd source, target;
    std::size_t width, height, depth;
};

struct MemsetNode {
    std::uintptr_t target;
    std::size_t pitch;
    unsigned value, element_size;
    std::size_t width, height;
    std::uintptr_t context;
};

struct GraphSymbols {
    using Handle = std::uintptr_t;

    void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);

    template <typename Function> struct Symbol {
        Symbol(void *library, const char *name)
            : function(reinterpret_cast<Function *>(library == nullptr ? nullptr : dlsym(library, name))) {
            if (function == nullptr)
                throw std::runtime_error(std::string("libcuda.so.1 cannot be loaded, or is too old: it has no ") + name);
        }
        template <typename... Arguments> int operator()(Arguments... arguments) const { return function(arguments...); }
        Function *function;
    };

    Symbol<int(int *)> device_count{library, "cuDeviceGetCount"};
    Symbol<int(Handle *)> current_context{library, "cuCtxGetCurrent"};
    Symbol<int(int *)> exchange_capture_mode{library, "cuThreadExchangeStreamCaptureMode"};
    Symbol<int(Handle stream, int *status)> is_capturing{library, "cuStreamIsCapturing"};
    Symbol<int(Handle stream, int *status, std::uint64_t *id, Handle *graph, const Handle **dependencies, std::size_t *)>
        capture_info{library, "cuStreamGetCaptureInfo_v2"};
    Symbol<int(Handle stream, Handle *nodes, std::size_t, unsigned flags)> update_dependencies{
        library, "cuStreamUpdateCaptureDependencies"};
    Symbol<int(Handle *exec, Handle graph, unsigned long long flags)> instantiate{library, "cuGraphInstantiateWithFlags"};
    Symbol<int(Handle exec)> destroy_exec{library, "cuGraphExecDestroy"};
    Symbol<int(Handle exec, Handle stream)> launch{library, "cuGraphLaunch"};
    Symbol<int(Handle graph, Handle *nodes, std::size_t *)> graph_nodes{library, "cuGraphGetNodes"};
    Symbol<int(Handle node, int *)> node_type{library, "cuGraphNodeGetType"};
    Symbol<int(Handle node, KernelNode *)> kernel_node{library, "cuGraphKernelNodeGetParams_v2"};
    Symbol<int(Handle node, MemcpyNode *)> memcpy_node{library, "cuGraphMemcpyNodeGetParams"};
    Symbol<int(Handle node, MemsetNode *)> memset_node{library, "cuGraphMemsetNodeGetParams"};
    Symbol<int(Handle node, Handle *graph)> child_graph{library, "cuGraphChildGraphNodeGetGraph"};
    Symbol<int(Handle function, std::size_t index, std::size_t *offset, std::size_t *size)> parameter_info{
        library, "cuFuncGetParamInfo"};
    Symbol<int(Handle *node, Handle graph, const Handle *dependencies, std::size_t, const KernelNode *)> add_kernel_node{
        library, "cuGraphAddKernelNode_v2"};
    Symbol<int(Handle exec, Handle node, const KernelNode *)> set_kernel_node{library, "cuGraphExecKernelNodeSetParams_v2"};
};

// Throws std::runtime_error where there is no driver, or an older one than that of CUDA 12.4.
inline const GraphSymbols &graph_symbols() {
    static const GraphSymbols symbols;
    return symbols;
}

} // namespace tcuda
