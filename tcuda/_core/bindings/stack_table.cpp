#include "bindings/stack_table.hpp"

namespace tcuda {
namespace {

std::size_t hash_of(const StackFrames &frames) {
    std::size_t hash = frames.size();
    for (const StackFrame &frame : frames)
        hash = (hash ^ reinterpret_cast<std::size_t>(frame.code) ^ static_cast<std::size_t>(frame.place) << 48) *
               0x9E3779B97F4A7C15ull;
    return hash;
}

} // namespace

StackId StackTable::number(const StackFrames &frames, bool *is_new) {
    const std::size_t hash = hash_of(frames);
    const std::lock_guard lock(mutex_);
    const auto range = by_hash_.equal_range(hash);
    for (auto known = range.first; known != range.second; ++known)
        if (stacks_[known->second] == frames)
            return known->second;
    const auto number = static_cast<StackId>(stacks_.size());
    stacks_.push_back(frames);
    try {
        by_hash_.emplace(hash, number);
    } catch (...) {
        stacks_.pop_back();
        throw;
    }
    *is_new = true;
    return number;
}

StackFrames StackTable::frames(StackId number) {
    const std::lock_guard lock(mutex_);
    return stacks_.at(number);
}

StackTable &stack_table() {
    static auto *const table = new StackTable;
    return *table;
}

} // namespace tcuda
