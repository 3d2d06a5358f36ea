#include "sanitizer/_cpp/watch/kernel_questions.hpp"

namespace tcuda::watch {
namespace {

template <typename Function> void look_up(Function *&function, const FindFunction &find, const char *name) {
    function = reinterpret_cast<Function *>(find(name));
}

} // namespace

KernelQuestions KernelQuestions::from(const FindFunction &find) {
    KernelQuestions made;
    look_up(made.parameter_info, find, "cuFuncGetParamInfo");
    look_up(made.module_of_function, find, "cuFuncGetModule");
    look_up(made.library_of_kernel, find, "cuKernelGetLibrary");
    look_up(made.function_of_kernel, find, "cuKernelGetFunction");
    look_up(made.name_of_function, find, "cuFuncGetName");
    look_up(made.exchange_capture_mode, find, "cuThreadExchangeStreamCaptureMode");
    return made;
}

GraphQuestions GraphQuestions::from(const FindFunction &find) {
    GraphQuestions made;
    look_up(made.capture_info, find, "cuStreamGetCaptureInfo_v3");
    look_up(made.capture_info_without_edges, find, "cuStreamGetCaptureInfo_v2");
    look_up(made.nodes, find, "cuGraphGetNodes");
    look_up(made.edges, find, "cuGraphGetEdges_v2");
    look_up(made.edges_without_data, find, "cuGraphGetEdges");
    look_up(made.node_type, find, "cuGraphNodeGetType");
    look_up(made.kernel_node, find, "cuGraphKernelNodeGetParams_v2");
    look_up(made.memcpy_node, find, "cuGraphMemcpyNodeGetParams");
    look_up(made.memset_node, find, "cuGraphMemsetNodeGetParams");
    look_up(made.child_graph, find, "cuGraphChildGraphNodeGetGraph");
    look_up(made.recorded_event, find, "cuGraphEventRecordNodeGetEvent");
    look_up(made.awaited_event, find, "cuGraphEventWaitNodeGetEvent");
    look_up(made.find_in_clone, find, "cuGraphNodeFindInClone");
    return made;
}

} // namespace tcuda::watch
