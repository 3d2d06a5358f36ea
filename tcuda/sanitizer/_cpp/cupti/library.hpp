#pragma once

#include <cstdint>
#include <string>

#include "sanitizer/_cpp/cupti/types.hpp"

namespace tcuda::cupti {

// libcupti.so, and the functions in it that the core calls. The library is never closed, because CUPTI stays in the
// driver until the process ends.
class Library {
public:
    // Opens the library at `path`. If a library of the same file name is loaded already, the constructor takes that
    // one: two copies of CUPTI in a process would not know of each other. Throws std::runtime_error that says why the
    // library cannot be used.
    explicit Library(const std::string &path);

    int (*enable)(std::uint32_t enable, Handle subscriber, int domain, std::uint32_t id) = nullptr;
    int (*unsubscribe)(Handle subscriber) = nullptr;

    // Throws std::runtime_error that says why CUPTI refuses.
    Handle subscribe(Callback callback) const;

private:
    int (*subscribe_)(Handle *, Callback, void *user) = nullptr;
    int (*subscribe_by_name_)(Handle *, Callback, void *user,
                              SubscriberParameters *) = nullptr; // null before CUDA 12.9
    int (*text_of_)(int status, const char **text) = nullptr;
};

} // namespace tcuda::cupti
