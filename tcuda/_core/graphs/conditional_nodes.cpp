#include "graphs/conditional_nodes.hpp"

#include "driver/relaxed_captures.hpp"
#include "driver/status.hpp"

namespace tcuda {
namespace {

// The driver defines cudaGraphSetConditional() when it loads a module. PTX of this old version is compiled for every
// device that has conditional nodes, so no compiler is needed.
constexpr char kernels[] = R"(.version 6.0
.target sm_50
.address_size 64

.extern .func cudaGraphSetConditional(.param .b64 handle_of_node, .param .b32 value_of_node);

.visible .entry tcuda_set_conditional_1(.param .u64 handle, .param .u64 flag)
{
    .reg .pred %zero;
    .reg .b16 %byte;
    .reg .b32 %value;
    .reg .b64 %handle, %flag, %address;
    ld.param.u64 %handle, [handle];
    ld.param.u64 %flag, [flag];
    cvta.to.global.u64 %address, %flag;
    ld.global.u8 %byte, [%address];
    setp.eq.s16 %zero, %byte, 0;
    selp.u32 %value, 0, 1, %zero;
    {
        .param .b64 first;
        .param .b32 second;
        st.param.b64 [first], %handle;
        st.param.b32 [second], %value;
        call.uni cudaGraphSetConditional, (first, second);
    }
    ret;
}

.visible .entry tcuda_set_conditional_4(.param .u64 handle, .param .u64 flag)
{
    .reg .pred %zero;
    .reg .b32 %word, %value;
    .reg .b64 %handle, %flag, %address;
    ld.param.u64 %handle, [handle];
    ld.param.u64 %flag, [flag];
    cvta.to.global.u64 %address, %flag;
    ld.global.u32 %word, [%address];
    setp.eq.s32 %zero, %word, 0;
    selp.u32 %value, 0, 1, %zero;
    {
        .param .b64 first;
        .param .b32 second;
        st.param.b64 [first], %handle;
        st.param.b32 [second], %value;
        call.uni cudaGraphSetConditional, (first, second);
    }
    ret;
}
)";

// The place in a capture at which a stream is.
struct CapturePlace {
    libcuda::Graph graph;
    const libcuda::GraphNode *before; // valid until the next call for the stream
    std::size_t count;
};

int place_of(const libcuda::GraphCalls &graphs, libcuda::Stream stream, CapturePlace *place) {
    int capture = libcuda::capture_status_none;
    libcuda::CaptureId id = 0;
    if (const int status = graphs.capture_info(stream, &capture, &id, &place->graph, &place->before, &place->count))
        return status;
    if (capture == libcuda::capture_status_none)
        return illegal_state;
    return capture == libcuda::capture_status_invalidated ? capture_invalidated : success;
}

} // namespace

ConditionalNodes::ConditionalNodes()
    : contexts_(libcuda::calls<libcuda::ContextCalls>()), captures_(libcuda::calls<libcuda::CaptureCalls>()),
      graphs_(libcuda::calls<libcuda::GraphCalls>()), conditionals_(libcuda::calls<libcuda::ConditionalCalls>()),
      modules_(libcuda::calls<libcuda::ModuleCalls>()), kernels_(libcuda::calls<libcuda::KernelCalls>()) {}

int ConditionalNodes::add(libcuda::Stream stream, int kind, libcuda::DevicePointer flag, std::size_t size,
                          libcuda::ConditionalHandle *handle, libcuda::Graph *body) {
    CapturePlace place{};
    if (const int status = place_of(graphs_, stream, &place))
        return status;
    libcuda::NodeParameters parameters{};
    if (const int status = contexts_.get_current(&parameters.context))
        return status;
    if (const int status = conditionals_.create_handle(handle, place.graph, parameters.context, 0, 0))
        return status;
    if (const int status = set(stream, *handle, flag, size))
        return status;
    if (const int status = place_of(graphs_, stream, &place)) // the node comes after the kernel
        return status;
    parameters.type = libcuda::node_type_conditional;
    parameters.handle = *handle;
    parameters.kind = kind;
    parameters.body_count = 1;
    libcuda::GraphNode node = 0;
    if (const int status = conditionals_.add_node(&node, place.graph, place.before, place.count, &parameters))
        return status;
    *body = parameters.bodies[0];
    return graphs_.update_dependencies(stream, &node, 1, libcuda::set_capture_dependencies);
}

int ConditionalNodes::set(libcuda::Stream stream, libcuda::ConditionalHandle handle, libcuda::DevicePointer flag,
                          std::size_t size) {
    libcuda::Function function = 0;
    if (const int status = function_for(size, &function))
        return status;
    void *arguments[] = {&handle, &flag};
    return kernels_.launch(function, 1, 1, 1, 1, 1, 1, 0, stream, arguments, nullptr);
}

int ConditionalNodes::begin_capture_to_graph(libcuda::Stream stream, libcuda::Graph graph, int mode) const {
    return conditionals_.begin_capture_to_graph(stream, graph, nullptr, nullptr, 0, mode);
}

int ConditionalNodes::function_for(std::size_t size, libcuda::Function *function) {
    libcuda::Context context = 0;
    if (const int status = contexts_.get_current(&context))
        return status;
    const std::lock_guard lock(mutex_);
    libcuda::Module &module = loaded_[context];
    if (module == 0) {
        const RelaxedCaptures relaxed(captures_); // a capture of another thread may forbid the loading
        if (const int status = modules_.load(&module, kernels))
            return status;
    }
    return modules_.function(function, module, size == 1 ? "tcuda_set_conditional_1" : "tcuda_set_conditional_4");
}

} // namespace tcuda
