// What the MPI library of the process says of types and communicators.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

namespace tcuda::mpi {

// Handles are numbers or pointers, by the library; both fit here. In MPICH and its relatives, a handle has 32 bits.
using Handle = std::uint64_t;

struct Type {
    std::size_t size = 0;          // the bytes of the elements of an item
    std::int64_t extent = 0;       // from one item to the next
    std::int64_t begin = 0;        // of the first element of an item
    std::size_t true_extent = 0;   // from the first element to the end of the last one
    bool has_gaps() const { return extent != static_cast<std::int64_t>(size) || begin != 0; }
};

struct Library {
    // Functions of MPI; null if the library lacks the function.
    int (*type_size)(Handle type, int *size) = nullptr;
    int (*type_extent)(Handle type, std::intptr_t *begin, std::intptr_t *extent) = nullptr;
    int (*type_true_extent)(Handle type, std::intptr_t *begin, std::intptr_t *extent) = nullptr;
    int (*comm_rank)(Handle comm, int *rank) = nullptr;
    int (*comm_size)(Handle comm, int *size) = nullptr;
    int (*comm_test_inter)(Handle comm, int *flag) = nullptr;
    std::size_t handle_bytes = 4;
    std::optional<int> no_process; // MPI_PROC_NULL, if the value is known

    bool complete() const {
        return type_size != nullptr && type_extent != nullptr && type_true_extent != nullptr && comm_rank != nullptr &&
               comm_size != nullptr && comm_test_inter != nullptr;
    }
    std::optional<Type> type(Handle handle) const {
        int size = 0;
        std::intptr_t begin = 0, extent = 0, true_begin = 0, true_extent = 0;
        if (type_size(handle, &size) != 0 || size <= 0 || type_extent(handle, &begin, &extent) != 0 ||
            type_true_extent(handle, &true_begin, &true_extent) != 0 || true_extent <= 0)
            return std::nullopt;
        return Type{static_cast<std::size_t>(size), extent, true_begin, static_cast<std::size_t>(true_extent)};
    }
    // The handle at an address.
    Handle handle_at(const void *address, std::size_t place = 0) const {
        return handle_bytes == 4 ? static_cast<const std::uint32_t *>(address)[place]
                                 : static_cast<const std::uint64_t *>(address)[place];
    }
};

} // namespace tcuda::mpi
