#include "graphs/graph_mover.hpp"

#include <algorithm>
#include <cstring>

#include "driver/status.hpp"

namespace tcuda {
namespace {

constexpr std::size_t word_bytes = sizeof(std::uint64_t);

std::size_t words_of(std::size_t bytes) { return (bytes + word_bytes - 1) / word_bytes; }

} // namespace

int GraphMover::read(libcuda::Graph graph) { return read_nodes(graph, false); }

int GraphMover::read_nodes(libcuda::Graph graph, bool nested) {
    std::size_t count = 0;
    if (const int status = graphs_.nodes(graph, nullptr, &count))
        return status;
    std::vector<libcuda::GraphNode> nodes(count);
    if (const int status = count == 0 ? success : graphs_.nodes(graph, nodes.data(), &count))
        return status;
    for (const libcuda::GraphNode node : nodes) {
        if (const int status = read_node(node))
            return status;
        number_ += nested ? 0 : 1;
    }
    return success;
}

int GraphMover::read_node(libcuda::GraphNode node) {
    // Nearly every node is a kernel, so the type of the node is asked for only if this fails.
    libcuda::KernelNode launch{};
    if (graphs_.kernel_node(node, &launch) == success) {
        read_kernel(node, launch);
        return success;
    }
    int type = 0;
    if (const int status = graphs_.node_type(node, &type))
        return status;
    switch (type) {
    case libcuda::node_type_memcpy:
        return read_copy(node);
    case libcuda::node_type_memset:
        return read_fill(node);
    case libcuda::node_type_graph: {
        libcuda::Graph child = 0;
        const int status = graphs_.child_graph(node, &child);
        return status != success ? status : read_nodes(child, true);
    }
    default:
        return success;
    }
}

void GraphMover::read_kernel(libcuda::GraphNode node, const libcuda::KernelNode &launch) {
    const std::vector<KernelArguments::Piece> &pieces = arguments_.of(launch);
    bool uses = false;
    for (const KernelArguments::Piece &piece : pieces)
        for (std::size_t at = 0; at + word_bytes <= piece.size; at += word_bytes) {
            std::uintptr_t word;
            std::memcpy(&word, piece.bytes + at, word_bytes);
            uses |= move_.moves(word);
            moved(word);
        }
    if (!uses)
        return;
    kernels_.push_back({node, launch, sizes_.size(), pieces.size(), words_.size()});
    for (const KernelArguments::Piece &piece : pieces) {
        const std::size_t first = words_.size();
        sizes_.push_back(piece.size);
        words_.resize(first + words_of(piece.size));
        std::memcpy(words_.data() + first, piece.bytes, piece.size);
    }
}

int GraphMover::read_copy(libcuda::GraphNode node) {
    Simple<libcuda::MemcpyNode> copy{node, {}, {}};
    if (const int status = graphs_.memcpy_node(node, &copy.before))
        return status;
    copy.after = copy.before;
    const bool source = move_end(&copy.after.source), target = move_end(&copy.after.target);
    if (source || target)
        copies_.push_back(copy);
    return success;
}

bool GraphMover::move_end(libcuda::MemcpyEnd *end) {
    std::uintptr_t &address = end->memory_type == libcuda::memory_type_host ? end->host : end->device;
    const bool uses = move_.moves(address);
    address = moved(address);
    return uses;
}

int GraphMover::read_fill(libcuda::GraphNode node) {
    Simple<libcuda::MemsetNode> fill{node, {}, {}};
    if (const int status = graphs_.memset_node(node, &fill.before))
        return status;
    fill.after = fill.before;
    fill.after.target = moved(fill.before.target);
    if (move_.moves(fill.before.target))
        fills_.push_back(fill);
    return success;
}

std::uintptr_t GraphMover::moved(std::uintptr_t word) {
    if (word < libcuda::least_address)
        return word;
    if (move_.doubts(word))
        doubt();
    const std::uintptr_t to = move_.moves(word) ? word + move_.offset : word;
    addresses_.push_back(to);
    return to;
}

void GraphMover::doubt() {
    if (doubtful_ < 0)
        doubtful_ = static_cast<std::ptrdiff_t>(number_);
}

int GraphMover::set(const Kernel &kernel, bool moved) {
    std::size_t words = 0;
    for (std::size_t piece = 0; piece < kernel.pieces; ++piece)
        words += words_of(sizes_[kernel.first_piece + piece]);
    const auto first = words_.begin() + static_cast<std::ptrdiff_t>(kernel.first_word);
    arguments_set_.assign(first, first + static_cast<std::ptrdiff_t>(words));
    pieces_set_.clear();
    std::uint64_t *word = arguments_set_.data();
    for (std::size_t piece = 0; piece < kernel.pieces; ++piece) {
        const std::size_t size = sizes_[kernel.first_piece + piece];
        pieces_set_.push_back(word);
        for (std::size_t whole = 0; moved && whole < size / word_bytes; ++whole)
            if (move_.moves(word[whole]))
                word[whole] += move_.offset;
        word += words_of(size);
    }
    libcuda::KernelNode launch = kernel.launch;
    if (launch.parameters != nullptr) {
        launch.parameters = pieces_set_.data();
        return changes_.set_kernel_node(kernel.node, &launch);
    }
    std::size_t size = sizes_[kernel.first_piece];
    void *extra[] = {libcuda::launch_parameters_buffer, pieces_set_.front(), libcuda::launch_parameters_size, &size,
                     libcuda::launch_parameters_end};
    launch.extra = extra;
    return changes_.set_kernel_node(kernel.node, &launch);
}

int GraphMover::apply() {
    int status = success;
    for (const Kernel &kernel : kernels_)
        status = status != success ? status : set(kernel, true);
    for (const Simple<libcuda::MemcpyNode> &copy : copies_)
        status = status != success ? status : changes_.set_memcpy_node(copy.node, &copy.after);
    for (const Simple<libcuda::MemsetNode> &fill : fills_)
        status = status != success ? status : changes_.set_memset_node(fill.node, &fill.after);
    if (status != success)
        undo();
    return status;
}

void GraphMover::undo() {
    for (const Kernel &kernel : kernels_)
        set(kernel, false);
    for (const Simple<libcuda::MemcpyNode> &copy : copies_)
        changes_.set_memcpy_node(copy.node, &copy.before);
    for (const Simple<libcuda::MemsetNode> &fill : fills_)
        changes_.set_memset_node(fill.node, &fill.before);
}

std::vector<std::uintptr_t> GraphMover::addresses() {
    std::sort(addresses_.begin(), addresses_.end());
    addresses_.erase(std::unique(addresses_.begin(), addresses_.end()), addresses_.end());
    return std::move(addresses_);
}

} // namespace tcuda
