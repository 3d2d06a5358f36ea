// One call of a function of the table: its notes, and what the call tells about objects of the library.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "sanitizer/_cpp/library_calls/signature.hpp"
#include "sanitizer/_cpp/watch/call_notes.hpp"

namespace tcuda::library_calls {

class ThreadNotes;

// The notes are the innermost ones of the thread during the lifetime. An error of this class (no memory) leaves the
// call without notes.
class LibraryCall {
public:
    LibraryCall(std::size_t function, Values values) noexcept; // of `functions`; `values` must outlive the call
    ~LibraryCall();
    LibraryCall(const LibraryCall &) = delete;
    LibraryCall &operator=(const LibraryCall &) = delete;

    // The function has returned `result`.
    void returned(std::uint64_t result) noexcept;

    // A new interception begins: groups that threads have left open are forgotten.
    static void begin_era();

private:
    void note();
    void note_argument(std::size_t index);
    void note_object(std::size_t index, Role role);
    void note_transform();
    void merge();
    watch::NotedMemory &add(kernel_uses::Kind kind, const std::string &label);
    void unnote();
    void learn();
    void learn_object(std::size_t index, Role role);
    void learn_transform();

    const Signature &signature_;
    Values values_;
    ThreadNotes *const thread_;
    bool complete_ = true; // whether the notes name all the memory that the call uses
    watch::CallNotes notes_;
    std::optional<watch::NotesScope> scope_;
};

} // namespace tcuda::library_calls
