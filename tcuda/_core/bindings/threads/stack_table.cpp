#include "bindings/threads/stack_table.hpp"

#include <pthread.h>

#include "threads/published.hpp"

namespace tcuda {
namespace {

std::size_t hash_of(const StackFrames &frames) {
    std::size_t hash = frames.size();
    for (const StackFrame &frame : frames)
        hash = (hash ^ reinterpret_cast<std::size_t>(frame.code) ^ static_cast<std::size_t>(frame.place) << 48) *
               0x9E3779B97F4A7C15ull;
    return hash;
}

StackTable *the_table = nullptr;

} // namespace

StackTable::StackTable() {
    the_table = this;
    pthread_atfork([] { the_table->mutex_.lock(); }, [] { the_table->mutex_.unlock(); },
                   [] { the_table->mutex_.unlock(); });
}

StackId StackTable::number(const StackFrames &frames) {
    const std::size_t hash = hash_of(frames);
    const std::lock_guard lock(mutex_);
    const auto range = by_hash_.equal_range(hash);
    for (auto known = range.first; known != range.second; ++known)
        if (stacks_[known->second] == frames)
            return known->second;
    for (const StackFrame &frame : frames)
        if (codes_.insert(frame.code).second)
            Py_INCREF(frame.code);
    const auto number = static_cast<StackId>(stacks_.size());
    stacks_.push_back(frames);
    try {
        by_hash_.emplace(hash, number);
    } catch (...) {
        stacks_.pop_back();
        throw;
    }
    return number;
}

StackFrames StackTable::frames(StackId number) {
    const std::lock_guard lock(mutex_);
    return stacks_.at(number);
}

StackTable &stack_table() {
    static Published<StackTable> table;
    return table.get();
}

} // namespace tcuda
