#include "memory/ledger/imported_memory.hpp"

#include <iterator>
#include <new>

#include "memory/ledger/failures.hpp"

namespace tcuda {

Address ImportedMemory::open(Lock &lock, const std::vector<Piece> &pieces) {
    lock.leave_interpreter();
    // The node takes the host memory first, so that nothing can fail after the calls of the driver.
    Segments made;
    Segment &segment = made[0];
    segment.mappings.resize(pieces.size());
    for (const auto &[descriptor, size] : pieces)
        segment.size += size;
    Address address = 0;
    if (const int status = driver_.reserve(device_, segment.size, &address))
        throw DriverError(status, "reserving addresses for the memory of another process");
    auto node = made.extract(made.begin());
    node.key() = address;
    Segment &known = segments_.insert(std::move(node)).position->second;
    const int status = map(address, known, pieces);
    if (status == success)
        return address;
    known.unwanted = true;
    if (unmap(address, known))
        segments_.erase(address);
    throw DriverError(status, "importing the memory of another process");
}

bool ImportedMemory::close(Lock &lock, Address address, std::size_t *size) {
    const auto found = segments_.find(address);
    if (found == segments_.end() || found->second.unwanted)
        return false;
    lock.leave_interpreter();
    *size = found->second.size;
    found->second.unwanted = true;
    if (unmap(address, found->second))
        segments_.erase(found);
    return true;
}

void ImportedMemory::retry() {
    for (auto left = segments_.begin(); left != segments_.end();)
        left = left->second.unwanted && unmap(left->first, left->second) ? segments_.erase(left) : std::next(left);
}

void ImportedMemory::close_everything() {
    for (auto &[address, segment] : segments_)
        segment.unwanted = true;
    retry();
}

int ImportedMemory::map(Address address, Segment &segment, const std::vector<Piece> &pieces) try {
    Address at = address;
    for (std::size_t i = 0; i < pieces.size(); ++i) {
        Mapping &mapping = segment.mappings[i];
        mapping.size = pieces[i].second;
        if (const int status = driver_.import_physical(device_, pieces[i].first, &mapping.physical))
            return status;
        mapping.is_imported = true;
        if (const int status = driver_.map_imported(device_, at, mapping.size, mapping.physical))
            return status;
        mapping.is_mapped = true;
        at += mapping.size;
    }
    return success;
} catch (const std::bad_alloc &) { // of the driver table
    return out_of_memory;
}

// Undoes map(), and gives the addresses back. False if the driver failed; the next call goes on there.
bool ImportedMemory::unmap(Address address, Segment &segment) {
    bool done = true;
    Address at = address;
    for (Mapping &mapping : segment.mappings) {
        if (mapping.is_mapped)
            mapping.is_mapped = driver_.unmap_imported(device_, at, mapping.size) != success;
        if (mapping.is_imported && !mapping.is_mapped)
            mapping.is_imported = driver_.destroy(device_, mapping.physical) != success;
        done = done && !mapping.is_imported;
        at += mapping.size;
    }
    return done && driver_.release(device_, address, segment.size) == success;
}

} // namespace tcuda
