#include "random/captured_state.hpp"

#include "driver/graph_symbols.hpp"

namespace tcuda {
namespace {

// The parameters of the node that writes the words.
struct Put {
    Put(std::uintptr_t function, std::uintptr_t words, std::uint64_t seed, std::uint64_t offset)
        : words(words), seed(seed), offset(offset), node{function, {1, 1, 1}, {1, 1, 1}, 0, arguments, nullptr, 0, 0} {}
    Put(const Put &) = delete;
    Put &operator=(const Put &) = delete;

    std::uintptr_t words;
    std::uint64_t seed, offset;
    void *arguments[3] = {&words, &seed, &offset};
    KernelNode node;
};

} // namespace

int CapturedState::join(std::uintptr_t stream) {
    const GraphSymbols &driver = graph_symbols();
    if (node_ == 0) {
        int capture;
        std::uint64_t id;
        std::uintptr_t graph;
        const std::uintptr_t *before;
        std::size_t count;
        if (const int status = driver.capture_info(stream, &capture, &id, &graph, &before, &count))
            return status;
        // After what the stream has done by now: that may have used the memory of the words for something else.
        const Put put(function_, words_, 0, 0);
        if (const int status = driver.add_kernel_node(&node_, graph, before, count, &put.node))
            return status;
    }
    constexpr unsigned add = 0;
    return driver.update_dependencies(stream, &node_, 1, add);
}

int CapturedState::prepare(std::uintptr_t exec) {
    return state_.draw([&](std::uint64_t seed, std::uint64_t &offset) {
        const Put put(function_, words_, seed, offset);
        offset += taken_;
        return graph_symbols().set_kernel_node(exec, node_, &put.node);
    });
}

} // namespace tcuda
