#include "memory/ledger/external_memory.hpp"

#include <algorithm>
#include <cstdint>

#include "memory/allocator/sizes.hpp"
#include "memory/ledger/failures.hpp"

namespace tcuda {

Block *ExternalMemory::allocate(Lock &lock, const std::shared_ptr<ExternalSource> &source, std::size_t size,
                                Stream stream) {
    if (std::find(sources_.begin(), sources_.end(), source) == sources_.end())
        sources_.push_back(source);
    if (size > largest_request)
        return nullptr;
    const std::size_t taken = (size + source->unit - 1) / source->unit * source->unit;
    const std::size_t reserved = source->reserve == Reserve::unknown ? statistics_.allocated() : statistics_.reserved();
    // A source that reports its segments meets the limit when it takes a segment.
    if (source->reserve != Reserve::reported && !limit_.allows(lock, taken, reserved))
        return nullptr;
    Address address;
    void *token = nullptr;
    {
        if (source->reserve == Reserve::each)
            lock.leave_interpreter();
        const Unlocked unlocked(lock);
        driver_.enter(device_);
        address = source->allocate(taken, device_, stream, &token);
    }
    if (address == 0)
        return nullptr;
    check_unknown(address, taken);
    try {
        driver_.adopt(device_, address, taken);
        return adopt(source, address, taken, stream, token);
    } catch (...) {
        driver_.disown(device_, address);
        const Unlocked unlocked(lock);
        source->free(address, taken, device_, stream, token);
        throw;
    }
}

// Memory that is still in use would have two owners, and the second free would hit the first owner's block.
void ExternalMemory::check_unknown(Address address, std::size_t size) const {
    if (live_.find(address) != nullptr || native_.overlaps(address, size))
        throw DuplicatePointer(address);
}

// Makes a block for memory of a source.
Block *ExternalMemory::adopt(const std::shared_ptr<ExternalSource> &source, Address address, std::size_t size,
                             Stream stream, void *token) {
    live_.reserve_one();
    StreamLife &life = lives_.of(stream);
    Block *block = blocks_.make();
    block->address = address;
    block->size = size;
    block->is_large = is_large_request(size);
    block->state = Block::State::allocated;
    block->stream = stream;
    block->source = source.get();
    block->life = &life;
    block->token = token;
    lives_.tie(life);
    if (source->reserve == Reserve::each) {
        statistics_.reserved_bytes.add(block->is_large, static_cast<std::int64_t>(size));
        statistics_.segment.add(block->is_large, 1);
        ++statistics_.num_device_alloc;
        history_.record_segment(Action::segment_alloc, address, size, stream, 0);
    }
    return block;
}

void ExternalMemory::free(Lock &lock, Block *block) {
    ExternalSource *source = block->source;
    const Address address = block->address;
    const std::size_t size = block->size;
    const Stream stream = block->stream;
    void *token = block->token;
    if (source->reserve == Reserve::each) {
        statistics_.reserved_bytes.add(block->is_large, -static_cast<std::int64_t>(size));
        statistics_.segment.add(block->is_large, -1);
        ++statistics_.num_device_free;
        history_.record_segment(Action::segment_free, address, size, stream, block->stack);
    }
    lives_.untie(*block->life);
    blocks_.remove(block);
    driver_.disown(device_, address);
    if (shutdown_.is_closed())
        return;
    if (source->reserve == Reserve::each)
        lock.leave_interpreter();
    const Unlocked unlocked(lock);
    driver_.enter(device_);
    if (source->is_library())
        driver_.finish(device_);
    source->free(address, size, device_, stream, token);
}

bool ExternalMemory::grow(Lock &lock, Pool &pool, Stream stream, std::size_t size, StackId stack) {
    const std::size_t wanted = segment_size(size);
    if (!limit_.allows(lock, wanted, statistics_.reserved()))
        return false;
    const std::shared_ptr<ExternalSource> library = pool.library;
    Address address;
    void *token = nullptr;
    {
        const Unlocked unlocked(lock);
        driver_.enter(device_);
        address = library->allocate(wanted, device_, stream, &token);
    }
    if (address == 0)
        return false;
    check_unknown(address, wanted);
    try {
        driver_.adopt(device_, address, wanted);
        native_.add_segment(pool, stream, is_large_request(size), address, wanted, token, stack);
    } catch (...) {
        driver_.disown(device_, address);
        const Unlocked unlocked(lock);
        library->free(address, wanted, device_, stream, token);
        throw;
    }
    return true;
}

void ExternalMemory::give_back(Lock &lock, std::vector<ReturnedSegment> &segments,
                               std::vector<std::unique_ptr<Pool>> &pools) {
    if (segments.empty() && pools.empty())
        return;
    for (const ReturnedSegment &segment : segments)
        driver_.disown(device_, segment.address);
    const Unlocked unlocked(lock);
    driver_.enter(device_);
    if (!segments.empty())
        driver_.finish(device_);
    for (const ReturnedSegment &segment : segments)
        segment.library->free(segment.address, segment.size, device_, segment.stream, segment.token);
    segments.clear(); // the last references to a library may go here, and Python code may run
    pools.clear();
}

void ExternalMemory::empty_caches(Lock &lock) {
    const auto sources = sources_;
    const Unlocked unlocked(lock);
    for (const auto &source : sources)
        source->empty_cache(device_);
}

void ExternalMemory::free_everything() {
    live_.each([&](const Block *block) {
        if (block->source == nullptr)
            return;
        driver_.disown(device_, block->address);
        block->source->free(block->address, block->size, device_, block->stream, block->token);
    });
}

} // namespace tcuda
