#include "sanitizer/_cpp/library_calls/thread_notes.hpp"

#include <utility>

namespace tcuda::library_calls {
namespace {

constexpr std::size_t most_spare = 64; // a group of NCCL may have had many

struct Holder {
    ThreadNotes notes;
    bool *ended;
    explicit Holder(bool *ended) : ended(ended) {}
    ~Holder() { *ended = true; }
};

} // namespace

ThreadNotes *ThreadNotes::of_thread() {
    static thread_local bool ended = false; // no destructor: it can be read until the thread is gone
    if (ended)
        return nullptr;
    static thread_local Holder holder(&ended);
    holder.notes.group_.renew();
    return &holder.notes;
}

watch::NotedMemory &ThreadNotes::add(watch::CallNotes &notes) {
    if (spare_.empty())
        return notes.memory.emplace_back();
    notes.memory.push_back(std::move(spare_.back()));
    spare_.pop_back();
    return notes.memory.back();
}

void ThreadNotes::remove_last(watch::CallNotes &notes) {
    if (spare_.size() < most_spare)
        spare_.push_back(std::move(notes.memory.back()));
    notes.memory.pop_back();
}

void ThreadNotes::lend(watch::CallNotes &notes) {
    if (lists_.empty())
        return;
    std::swap(notes, lists_.back());
    lists_.pop_back();
}

void ThreadNotes::take_back(watch::CallNotes &notes) {
    while (!notes.memory.empty())
        remove_last(notes);
    if (lists_.size() < 4)
        lists_.push_back(std::move(notes));
}

} // namespace tcuda::library_calls
