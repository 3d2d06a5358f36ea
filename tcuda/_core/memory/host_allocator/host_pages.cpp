#include "memory/host_allocator/host_pages.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <system_error>
#include <thread>
#include <vector>

#include "memory/host_allocator/host_sizes.hpp"

namespace tcuda {
namespace {

constexpr std::size_t huge_page = std::size_t(2) << 20;

void touch(char *pages, std::size_t begin, std::size_t end) {
    for (std::size_t at = begin; at < end; at += host_page)
        static_cast<volatile char *>(pages)[at] = 0;
}

} // namespace

Address map_host_pages(std::size_t size, unsigned threads) {
    void *const mapped = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (mapped == MAP_FAILED)
        return 0;
    // Large pages take less time to touch and to lock. A system without them refuses the advice.
    if (size >= huge_page)
        madvise(mapped, size, MADV_HUGEPAGE);
    char *const pages = static_cast<char *>(mapped);
    const std::size_t part = rounded_to((size + threads - 1) / threads, host_page);
    std::vector<std::thread> others;
    try {
        for (std::size_t begin = part; begin < size; begin += part)
            others.emplace_back(touch, pages, begin, std::min(begin + part, size));
    } catch (const std::exception &) { // the driver touches the pages that no thread has touched
    }
    touch(pages, 0, std::min(part, size));
    for (std::thread &other : others)
        other.join();
    return reinterpret_cast<Address>(mapped);
}

std::size_t free_host_pages() noexcept {
    const long pages = sysconf(_SC_AVPHYS_PAGES), size = sysconf(_SC_PAGESIZE);
    return pages < 0 || size < 0 ? 0 : static_cast<std::size_t>(pages) * static_cast<std::size_t>(size);
}

void unmap_host_pages(Address address, std::size_t size) noexcept {
    if (address != 0) // the system would unmap what the process has at the lowest addresses, such as its code
        munmap(reinterpret_cast<void *>(address), size);
}

} // namespace tcuda
