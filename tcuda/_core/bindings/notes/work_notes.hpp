// Notes of the memory that the kernels of a call use, for a listener that is not part of the core.
#pragma once

#include <nanobind/nanobind.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "transfers/transfer.hpp"

namespace tcuda {

// Takes the notes of one call. The kernels that the thread launches in the lifetime of the object are those of the
// call.
class NoteTaker {
public:
    virtual ~NoteTaker() = default;

    // The kernels use these bytes.
    virtual void add(std::uint64_t address, std::uint64_t bytes, bool is_written) = 0;

    // The kernels use the memory of the array, which may have any layout.
    virtual void add_array(PyObject *array, bool is_written) = 0;

    // The kernels may use the memory of the arrays and pointers in the tuple, and other memory.
    virtual void add_arguments(PyObject *arguments) = 0;
};

using NewNoteTaker = std::unique_ptr<NoteTaker> (*)();

// Makes the note taker of a call; null without a listener.
inline std::atomic<NewNoteTaker> new_note_taker{nullptr};

// Whether calls are noted now. The question comes before each launch, so the function only reads a pointer.
inline bool are_calls_noted() { return new_note_taker.load(std::memory_order_relaxed) != nullptr; }

// For its lifetime, the kernels of this thread use the memory that is added, and no other unless arguments are added.
// Without a listener the object does nothing.
class WorkNotes {
public:
    WorkNotes() {
        if (const NewNoteTaker make = new_note_taker.load(std::memory_order_relaxed))
            taker_ = make();
    }

    void reads(std::uint64_t address, std::uint64_t bytes) { add(address, bytes, false); }
    void writes(std::uint64_t address, std::uint64_t bytes) { add(address, bytes, true); }

    void reads_array(PyObject *array) { add_array(array, false); }
    void writes_array(PyObject *array) { add_array(array, true); }

    void may_use(PyObject *arguments) {
        if (taker_)
            taker_->add_arguments(arguments);
    }

private:
    void add(std::uint64_t address, std::uint64_t bytes, bool is_written) {
        if (taker_)
            taker_->add(address, bytes, is_written);
    }

    void add_array(PyObject *array, bool is_written) {
        if (taker_)
            taker_->add_array(array, is_written);
    }

    std::unique_ptr<NoteTaker> taker_;
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
