// Notes of the memory that kernels of the core itself use, for a race detector.
#pragma once

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "bindings/races/noted_calls.hpp"
#include "races/watch/call_notes.hpp"
#include "transfers/transfer.hpp"

namespace tcuda {

// For its lifetime, the kernels of this thread use the memory that is added, and no other. Without a race detector the
// object does nothing.
class WorkNotes {
public:
    WorkNotes() {
        if (are_calls_noted()) {
            notes_.emplace();
            notes_->exclusive = true;
            scope_.emplace(*notes_);
        }
    }

    void reads(std::uint64_t address, std::uint64_t bytes) { add(address, bytes, kernel_uses::Kind::read); }
    void writes(std::uint64_t address, std::uint64_t bytes) { add(address, bytes, kernel_uses::Kind::write); }

private:
    void add(std::uint64_t address, std::uint64_t bytes, kernel_uses::Kind kind) {
        if (!notes_)
            return;
        watch::NotedMemory memory;
        memory.region.set(address, bytes, {});
        memory.kind = kind;
        memory.kind_known = true;
        notes_->memory.push_back(std::move(memory));
    }

    std::optional<watch::CallNotes> notes_;
    std::optional<watch::NotesScope> scope_; // ends before the notes
};

// Transfer::pack() with notes.
inline bool pack_with_notes(Transfer &work, const Place &lane, const PackKernel &kernel, std::uint64_t target,
                            const std::vector<PackedArray> &arrays) {
    WorkNotes notes;
    for (const PackedArray &array : arrays) {
        notes.reads(array.source, array.bytes);
        notes.writes(target + array.offset, array.bytes);
    }
    return work.pack(lane, kernel, target, arrays);
}

// The notes of a kernel that adds `count` arrays of `bytes` bytes.
inline void note_addition(WorkNotes &notes, std::uint64_t out, const std::uint64_t *terms, std::size_t count,
                          std::uint64_t bytes) {
    notes.writes(out, bytes);
    for (std::size_t place = 0; place < count; ++place)
        notes.reads(terms[place], bytes);
}

} // namespace tcuda
