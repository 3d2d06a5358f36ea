#pragma once

#include <atomic>
#include <cstdint>

namespace tcuda::watch {

// A number that this function has not returned before.
inline std::uint64_t next_version() {
    static std::atomic<std::uint64_t> last{0};
    return last.fetch_add(1, std::memory_order_relaxed) + 1;
}

} // namespace tcuda::watch
