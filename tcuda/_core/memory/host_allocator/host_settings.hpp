// The options of page-locked host memory, with torch's meaning.
#pragma once

#include <cstddef>

namespace tcuda {

struct HostSettings {
    // Whether segments are pages of the process that the driver locks, and not memory that the driver allocates.
    bool registers_pages = false;
    // The threads that touch such pages before the driver locks them: the kernel zeroes the pages then.
    unsigned threads = 1;
    // The bytes of the first segment for small blocks; 0 for the usual size.
    std::size_t reserved_segment = 0;
    // Whether a thread asks the devices about freed blocks, so that allocations need not ask.
    bool background_thread = false;
};

} // namespace tcuda
