// A call of MPI, which a thunk has noticed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "sanitizer/_cpp/host_accesses/page_watch.hpp"
#include "sanitizer/_cpp/mpi/library.hpp"
#include "sanitizer/_cpp/mpi/mpi_watch.hpp"
#include "sanitizer/_cpp/mpi/table.hpp"

namespace tcuda::mpi {

// The watch in use and the library of the process.
void set_library(const Library &);
// Null ends the watch before, and waits until no thread tells that watch of a call.
void set_watch(MpiWatch *);

// Tells the watch of a call: of the memory in the constructor, and of requests after the call. No function throws.
class MpiCall {
public:
    // `large`: the counts of the call have 64 bits.
    MpiCall(const Function &function, const std::uint64_t *values, bool large) noexcept;
    void returned(int status) noexcept;

private:
    void add(MpiWatch &, const Buffer &, int rank, int size);
    void add_items(const Buffer &, const Type &, std::int64_t first, std::int64_t count);
    std::int64_t number(std::uint64_t value) const;
    std::int64_t number_at(std::uint64_t array, std::size_t place) const;
    void read_requests();
    void tell_complete(MpiWatch &, int status);
    const int *number_in(std::size_t argument) const { return reinterpret_cast<const int *>(values_[argument]); }

    const Function &function_;
    const std::uint64_t *const values_;
    const bool large_;
    Uses uses_;
    std::optional<PageWatch::Pause> pause_; // MPI may use system calls, which fail on protected pages
    std::vector<Handle> requests_;
};

} // namespace tcuda::mpi
