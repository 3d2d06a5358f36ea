// Puts thunks into the import tables of the modules that call NVIDIA's libraries, and takes the thunks out again.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "sanitizer/_cpp/library_calls/import_table.hpp"

namespace tcuda::library_calls {

// The thunk for the function `name` at `address`, for callers that have no import table; `address` if there is no
// thunk.
std::uintptr_t noting_function(const std::string &name, std::uintptr_t address);

// A process has one interception. Its users are counted: the first user begins the interception, and the last ends it.
class Interception {
public:
    static Interception &instance();

    // `modules` has parts of the paths of more modules whose calls are noted.
    void begin(const std::vector<std::string> &modules);
    void end();
    // Looks at the modules that were loaded since the last look.
    void look_again();

    bool is_on() const { return on_.load(std::memory_order_relaxed); }
    // The path of each module with the names of the functions that are intercepted in it.
    std::vector<std::pair<std::string, std::vector<std::string>>> intercepted() const;

private:
    struct Replaced {
        ImportEntry entry;
        std::uintptr_t before, ours;
    };
    struct Watched {
        LoadedModule module;
        std::vector<Replaced> entries;
    };

    void look();
    bool is_wanted(const std::string &path) const;
    void intercept(const std::string &path);

    mutable std::mutex mutex_;
    std::size_t users_ = 0;
    std::atomic<bool> on_{false};
    unsigned long long loads_ = 0; // at the last look
    std::vector<std::string> more_;
    std::vector<Watched> watched_;
};

} // namespace tcuda::library_calls
