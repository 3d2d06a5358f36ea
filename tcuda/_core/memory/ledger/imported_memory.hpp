#pragma once

#include <cstddef>
#include <map>
#include <utility>
#include <vector>

#include "driver/driver.hpp"
#include "threads/lock.hpp"

namespace tcuda {

// Physical memory of other processes, mapped at addresses of this process. Such memory counts in no statistics, because
// its owner counts it.
class ImportedMemory {
public:
    // A file descriptor of the driver, and the size of the physical memory.
    using Piece = std::pair<int, std::size_t>;

    ImportedMemory(int device, Driver &driver) : device_(device), driver_(driver) {}
    ImportedMemory(const ImportedMemory &) = delete;
    ImportedMemory &operator=(const ImportedMemory &) = delete;

    // Maps the pieces side by side, all of them or none, and returns the address. The descriptors stay the caller's.
    // Throws DriverError.
    Address open(Lock &lock, const std::vector<Piece> &pieces);

    // Unmaps the memory that was opened at `address`. `*size` becomes its size. False, with nothing changed, if none
    // was opened there. Memory that the driver fails to unmap stays known until retry().
    bool close(Lock &lock, Address address, std::size_t *size);

    // Offers the driver the memory again that it failed to take back.
    void retry();

    // Unmaps all memory. Called when the ledger ends.
    void close_everything();

private:
    struct Mapping {
        std::size_t size = 0;
        Physical physical = 0;
        bool is_mapped = false, is_imported = false;
    };
    struct Segment {
        std::size_t size = 0;
        std::vector<Mapping> mappings;
        bool unwanted = false;
    };
    using Segments = std::map<Address, Segment>;

    int map(Address address, Segment &segment, const std::vector<Piece> &pieces);
    bool unmap(Address address, Segment &segment);

    const int device_;
    Driver &driver_;
    Segments segments_;
};

} // namespace tcuda
