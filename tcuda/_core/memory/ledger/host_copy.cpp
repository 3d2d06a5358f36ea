#include "memory/ledger/host_copy.hpp"

#include <future>
#include <new>
#include <system_error>
#include <thread>

#include "memory/host_allocator/host_pages.hpp"
#include "memory/host_allocator/host_sizes.hpp"
#include "memory/host_allocator/node_preference.hpp"

namespace tcuda {
namespace {

// The driver locks and copies one chunk while threads touch the pages of the next one. A chunk is so large that the
// calls of the driver take no time beside the copy.
constexpr std::size_t chunk_size = std::size_t(256) << 20;
// More threads touch the pages no faster.
constexpr unsigned most_threads = 16;

Address map_pages(std::size_t size) {
    constexpr std::size_t bytes_of_thread = std::size_t(8) << 20; // less is not worth a thread
    const auto useful = static_cast<unsigned>(std::min<std::size_t>(size / bytes_of_thread + 1, most_threads));
    return map_host_pages(size, std::min(useful, std::max(std::thread::hardware_concurrency(), 1U)));
}

// Pages that a thread maps and touches in the background.
class ComingPages {
public:
    explicit ComingPages(std::size_t size) : size_(size) {
        if (size == 0)
            return;
        try {
            coming_ = std::async(std::launch::async, map_pages, size);
        } catch (const std::system_error &) { // without a thread, get() maps the pages
        }
    }
    ~ComingPages() {
        if (coming_.valid())
            unmap_host_pages(coming_.get(), size_);
    }
    ComingPages(const ComingPages &) = delete;
    ComingPages &operator=(const ComingPages &) = delete;

    std::size_t size() const { return size_; }
    // The caller gets the pages; 0 if there is no memory.
    Address get() { return coming_.valid() ? coming_.get() : map_pages(size_); }

private:
    const std::size_t size_;
    std::future<Address> coming_;
};

} // namespace

HostCopy::~HostCopy() {
    if (shutdown_.is_closed() || shutdown_.is_abandoned()) // the driver may be gone
        return;
    for (const Chunk &chunk : chunks_)
        if (driver_.host_unregister(chunk.address) == success) // memory that is still locked must stay
            unmap_host_pages(chunk.address, chunk.size);
}

int HostCopy::take(const std::vector<Range> &ranges, bool *lacks_host) {
    std::size_t total = 0;
    for (const Range &range : ranges)
        total += range.size;
    const NodePreference preference(driver_.host_node());
    if (total > driver_.host_room()) { // the system ends processes where touched pages find no memory
        *lacks_host = true;
        return out_of_memory;
    }
    int status;
    try {
        status = take_parts(ranges, total, lacks_host);
    } catch (const std::bad_alloc &) {
        status = out_of_memory;
        *lacks_host = true;
    }
    const int finished = driver_.finish_copies(device_); // also after a failure: the memory must not go before
    return status == success ? finished : status;
}

int HostCopy::take_parts(const std::vector<Range> &ranges, std::size_t total, bool *lacks_host) {
    const auto pages_for = [](std::size_t bytes) {
        return std::make_unique<ComingPages>(rounded_to(std::min(bytes, chunk_size), host_page));
    };
    auto coming = pages_for(total);
    for (const Range &range : ranges)
        for (std::size_t done = 0; done < range.size;) {
            if (chunks_.empty() || chunks_.back().used == chunks_.back().size) {
                const std::size_t size = coming->size();
                const Address pages = coming->get();
                coming = pages_for(total - std::min(total, size));
                if (const int status = add_chunk(pages, size)) {
                    *lacks_host = true;
                    return status;
                }
            }
            Chunk &chunk = chunks_.back();
            const std::size_t size = std::min(range.size - done, chunk.size - chunk.used);
            parts_.push_back({{range.address + done, size}, chunk.address + chunk.used});
            if (const int status = driver_.copy(device_, parts_.back().host, range.address + done, size))
                return status;
            chunk.used += size;
            done += size;
            total -= size;
        }
    return success;
}

// Locks pages. The pages go back to the system after a failure.
int HostCopy::add_chunk(Address pages, std::size_t size) {
    if (pages == 0)
        return out_of_memory;
    int status = out_of_memory;
    try {
        chunks_.reserve(chunks_.size() + 1);
        status = driver_.host_register(pages, size);
    } catch (const std::bad_alloc &) {
    }
    if (status == success)
        chunks_.push_back({pages, size, 0});
    else
        unmap_host_pages(pages, size);
    return status;
}

int HostCopy::give(const std::vector<Range> &wanted) {
    int status = success;
    auto part = parts_.begin();
    for (const Range &range : wanted) {
        const Address end = range.address + range.size;
        while (part != parts_.end() && part->range.address + part->range.size <= range.address)
            ++part;
        for (auto at = part; status == success && at != parts_.end() && at->range.address < end; ++at) {
            const Address from = std::max(at->range.address, range.address);
            const Address to = std::min(at->range.address + at->range.size, end);
            status = driver_.copy(device_, from, at->host + (from - at->range.address), to - from);
        }
    }
    const int finished = driver_.finish_copies(device_);
    return status == success ? finished : status;
}

} // namespace tcuda
