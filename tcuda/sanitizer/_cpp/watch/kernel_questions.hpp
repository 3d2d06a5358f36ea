// What the reader of launches and the reader of graphs ask the driver. The functions are those of libcuda, or functions
// of a test.
#pragma once

#include <cstddef>
#include <functional>
#include <string>

#include "driver/libcuda_types.hpp"
#include "sanitizer/_cpp/watch/launch_uses.hpp"

namespace tcuda::watch {

// The address of a function of libcuda; null if there is none.
using FindFunction = std::function<void *(const char *name)>;

// Each function returns a status and has the parameters of the function of libcuda that it stands for. A function that
// the driver lacks is null. The driver allows all functions in a callback, and under RelaxedQuestions also during a
// capture.
struct KernelQuestions {
    int (*parameter_info)(libcuda::Function, std::size_t index, std::size_t *offset, std::size_t *size) = nullptr;
    int (*module_of_function)(Module *, libcuda::Function) = nullptr;
    int (*library_of_kernel)(Module *, libcuda::Function kernel) = nullptr;
    int (*function_of_kernel)(libcuda::Function *, libcuda::Function kernel) = nullptr;
    int (*name_of_function)(const char **name, libcuda::Function) = nullptr;
    int (*exchange_capture_mode)(int *mode) = nullptr;

    static KernelQuestions from(const FindFunction &find);
};

struct GraphQuestions {
    // The version with the data of edges. Older drivers have only the version without these data.
    int (*capture_info)(libcuda::Stream, int *status, libcuda::CaptureId *, libcuda::Graph *,
                        const libcuda::GraphNode **dependencies, const void **edges, std::size_t *count) = nullptr;
    int (*capture_info_without_edges)(libcuda::Stream, int *status, libcuda::CaptureId *, libcuda::Graph *,
                                      const libcuda::GraphNode **dependencies, std::size_t *count) = nullptr;
    int (*nodes)(libcuda::Graph, libcuda::GraphNode *, std::size_t *count) = nullptr;
    int (*edges)(libcuda::Graph, libcuda::GraphNode *from, libcuda::GraphNode *to, void *edges,
                 std::size_t *count) = nullptr;
    int (*edges_without_data)(libcuda::Graph, libcuda::GraphNode *from, libcuda::GraphNode *to,
                              std::size_t *count) = nullptr;
    int (*node_type)(libcuda::GraphNode, int *type) = nullptr;
    int (*kernel_node)(libcuda::GraphNode, libcuda::KernelNode *) = nullptr;
    int (*memcpy_node)(libcuda::GraphNode, libcuda::MemcpyNode *) = nullptr;
    int (*memset_node)(libcuda::GraphNode, libcuda::MemsetNode *) = nullptr;
    int (*child_graph)(libcuda::GraphNode, libcuda::Graph *) = nullptr;
    int (*recorded_event)(libcuda::GraphNode, libcuda::Event *) = nullptr;
    int (*awaited_event)(libcuda::GraphNode, libcuda::Event *) = nullptr;
    int (*find_in_clone)(libcuda::GraphNode *, libcuda::GraphNode original, libcuda::Graph clone) = nullptr;

    static GraphQuestions from(const FindFunction &find);
};

} // namespace tcuda::watch
