#include "random/captured_state.hpp"

#include "driver/status.hpp"

namespace tcuda {
namespace {

// The parameters of the node that writes the two words.
struct WordsNode {
    WordsNode(libcuda::Function function, std::uintptr_t words, std::uint64_t seed, std::uint64_t offset)
        : words(words), seed(seed), offset(offset), node{function, {1, 1, 1}, {1, 1, 1}, 0, arguments, nullptr, 0, 0} {}
    WordsNode(const WordsNode &) = delete;
    WordsNode &operator=(const WordsNode &) = delete;

    std::uintptr_t words;
    std::uint64_t seed, offset;
    void *arguments[3] = {&words, &seed, &offset};
    libcuda::KernelNode node;
};

} // namespace

CapturedState::CapturedState(PhiloxState &state, libcuda::Function function, std::uintptr_t words)
    : graphs_(libcuda::calls<libcuda::GraphCalls>()), state_(state), function_(function), words_(words) {}

int CapturedState::join(libcuda::Stream stream) {
    if (node_ == 0) {
        int capture;
        libcuda::CaptureId id;
        libcuda::Graph graph;
        const libcuda::GraphNode *before;
        std::size_t count;
        if (const int status = graphs_.capture_info(stream, &capture, &id, &graph, &before, &count))
            return status;
        // The node follows what the stream has captured by now: that work may use the memory of the words.
        const WordsNode words(function_, words_, 0, 0);
        if (const int status = graphs_.add_kernel_node(&node_, graph, before, count, &words.node))
            return status;
        target_ = node_;
    }
    return graphs_.update_dependencies(stream, &node_, 1, libcuda::add_capture_dependencies);
}

int CapturedState::prepare(libcuda::GraphExec exec) {
    return state_.draw([&](std::uint64_t seed, std::uint64_t &offset) {
        const WordsNode words(function_, words_, seed, offset);
        offset += taken_;
        // No kernel has drawn if there is no node: the program has only moved the generator.
        return target_ == 0 ? success : graphs_.set_kernel_node(exec, target_, &words.node);
    });
}

int CapturedState::prepare_node() {
    return state_.draw([&](std::uint64_t seed, std::uint64_t &offset) {
        const WordsNode words(function_, words_, seed, offset);
        offset += taken_;
        return node_ == 0 ? success : libcuda::calls<libcuda::GraphChangeCalls>().set_kernel_node(node_, &words.node);
    });
}

} // namespace tcuda
