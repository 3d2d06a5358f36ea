// The calls of NCCL that a thread has made in a group: the end of the group launches their kernels.
#pragma once

#include <cstdint>
#include <vector>

#include "sanitizer/_cpp/watch/call_notes.hpp"

namespace tcuda::library_calls {

class OpenGroup {
public:
    static void begin_era(); // the groups that are open now are forgotten
    void renew();            // forgets the group of an earlier era

    bool is_open() const { return depth_ != 0; }
    void open() { ++depth_; }
    void close();
    void add(const std::vector<watch::NotedMemory> &memory, std::uint64_t stream);

    // The notes for the end of the group, if this end is the end of the outermost group. A group of calls on several
    // streams launches a kernel on each stream. The notes of such a group do not tell which kernel uses which memory,
    // so the kinds are unknown.
    std::vector<watch::NotedMemory> noted() const;

private:
    unsigned long long era_ = 0;
    unsigned depth_ = 0;
    bool several_streams_ = false;
    std::uint64_t stream_ = 0;
    std::vector<watch::NotedMemory> memory_;
};

} // namespace tcuda::library_calls
