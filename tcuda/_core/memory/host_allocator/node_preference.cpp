#include "memory/host_allocator/node_preference.hpp"

#include <sys/syscall.h>
#include <unistd.h>

namespace tcuda {
namespace {

constexpr int policy_default = 0, policy_preferred = 1; // MPOL_DEFAULT, MPOL_PREFERRED
constexpr int nodes_in_word = 8 * static_cast<int>(sizeof(unsigned long));
constexpr int most_nodes = 16 * nodes_in_word;

} // namespace

// The system's own calls, because libnuma is not on every machine.
NodePreference::NodePreference(int node) noexcept {
    if (node < 0 || node >= most_nodes)
        return;
    int policy = policy_default;
    if (syscall(SYS_get_mempolicy, &policy, nullptr, 0ul, nullptr, 0ul) != 0 || policy != policy_default)
        return;
    unsigned long nodes[most_nodes / nodes_in_word] = {};
    nodes[node / nodes_in_word] = 1ul << (node % nodes_in_word);
    // The kernel reads one node less than the number says.
    is_set_ = syscall(SYS_set_mempolicy, policy_preferred, nodes, static_cast<unsigned long>(most_nodes) + 1) == 0;
}

NodePreference::~NodePreference() {
    if (is_set_)
        syscall(SYS_set_mempolicy, policy_default, nullptr, 0ul);
}

} // namespace tcuda
