// Pages of the process.
#pragma once

#include <cstddef>

#include "driver/driver.hpp"

namespace tcuda {

// New pages, all of which are touched by `threads` threads; 0 if there is no memory.
Address map_host_pages(std::size_t size, unsigned threads);
// Does nothing for the address 0.
void unmap_host_pages(Address address, std::size_t size) noexcept;

// The bytes of the machine's memory that nothing uses, not even the cache of files.
std::size_t free_host_pages() noexcept;

} // namespace tcuda
