#include "sanitizer/_cpp/library_calls/open_group.hpp"

#include <atomic>

namespace tcuda::library_calls {
namespace {

std::atomic<unsigned long long> present_era{1};

} // namespace

void OpenGroup::renew() {
    const unsigned long long era = present_era.load(std::memory_order_relaxed);
    if (era_ == era)
        return;
    *this = OpenGroup();
    era_ = era;
}

void OpenGroup::begin_era() { ++present_era; }

void OpenGroup::close() {
    if (depth_ == 0 || --depth_ != 0)
        return;
    memory_.clear();
    several_streams_ = false;
}

void OpenGroup::add(const std::vector<watch::NotedMemory> &memory, std::uint64_t stream) {
    several_streams_ = several_streams_ || (!memory_.empty() && stream != stream_);
    stream_ = stream;
    memory_.insert(memory_.end(), memory.begin(), memory.end());
}

std::vector<watch::NotedMemory> OpenGroup::noted() const {
    if (depth_ != 1)
        return {};
    std::vector<watch::NotedMemory> memory = memory_;
    if (several_streams_)
        for (watch::NotedMemory &noted : memory)
            noted.kind_known = false;
    return memory;
}

} // namespace tcuda::library_calls
