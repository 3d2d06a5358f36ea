// The NUMA node on which a thread takes new pages.
#pragma once

namespace tcuda {

// While the object lives, the system takes the new pages of this thread from one NUMA node as long as the node has free
// memory, also in calls of the driver. Threads that this thread starts have the same preference.
//
// Nothing happens for a node below 0, if the program has a preference of its own, or if the system forbids a
// preference.
class NodePreference {
public:
    explicit NodePreference(int node) noexcept;
    ~NodePreference();
    NodePreference(const NodePreference &) = delete;
    NodePreference &operator=(const NodePreference &) = delete;

private:
    bool is_set_ = false;
};

} // namespace tcuda
