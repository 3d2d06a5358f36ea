#include "sanitizer/_cpp/cupti/library.hpp"

#include <dlfcn.h>

#include <stdexcept>

namespace tcuda::cupti {
namespace {

constexpr std::uint32_t oldest_version = 18; // of CUDA 12.0

template <typename Function> void find(void *library, Function *&function, const char *name) {
    function = reinterpret_cast<Function *>(dlsym(library, name));
}

} // namespace

Library::Library(const std::string &path) {
    const std::string name = path.substr(path.rfind('/') + 1);
    void *library = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NOLOAD);
    if (library == nullptr)
        library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) {
        const char *const reason = dlerror();
        throw std::runtime_error("CUPTI cannot be loaded: " + std::string(reason == nullptr ? path.c_str() : reason));
    }
    int (*get_version)(std::uint32_t *) = nullptr;
    find(library, get_version, "cuptiGetVersion");
    find(library, subscribe_, "cuptiSubscribe");
    find(library, subscribe_by_name_, "cuptiSubscribe_v2");
    find(library, text_of_, "cuptiGetResultString");
    find(library, enable, "cuptiEnableCallback");
    find(library, unsubscribe, "cuptiUnsubscribe");
    if (get_version == nullptr || subscribe_ == nullptr || enable == nullptr || unsubscribe == nullptr)
        throw std::runtime_error(path + " lacks functions of CUPTI");
    std::uint32_t version = 0;
    if (get_version(&version) != ok || version < oldest_version)
        throw std::runtime_error(path + " has version " + std::to_string(version) +
                                 " of CUPTI, which is too old: version " + std::to_string(oldest_version) +
                                 " of CUDA 12.0 is the oldest that works");
}

Handle Library::subscribe(Callback callback) const {
    Handle subscriber = 0;
    char other[other_name_room] = "";
    int status;
    if (subscribe_by_name_ != nullptr) {
        SubscriberParameters parameters{sizeof(SubscriberParameters), "tcuda", other, sizeof(other)};
        status = subscribe_by_name_(&subscriber, callback, nullptr, &parameters);
        other[sizeof(other) - 1] = '\0';
    } else {
        status = subscribe_(&subscriber, callback, nullptr);
    }
    switch (status) {
    case ok:
        return subscriber;
    case several_subscribers:
    case limit_reached:
        throw std::runtime_error("CUPTI serves one tool at a time, and " +
                                 (other[0] != '\0' ? "\"" + std::string(other) + "\"" : std::string("another tool")) +
                                 " uses CUPTI already");
    case not_compatible:
        throw std::runtime_error("this version of CUPTI does not fit the driver");
    case insufficient_privileges:
        throw std::runtime_error("the system does not allow this user to use CUPTI");
    default: {
        const char *text = nullptr;
        if (text_of_ != nullptr)
            text_of_(status, &text);
        throw std::runtime_error("CUPTI refuses: " +
                                 (text != nullptr ? std::string(text) : "status " + std::to_string(status)));
    }
    }
}

} // namespace tcuda::cupti
