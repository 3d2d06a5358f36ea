#include "sanitizer/_cpp/cupti/subscription.hpp"

#include <pthread.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <stdexcept>
#include <thread>

#include "driver/own_memory_call.hpp"
#include "sanitizer/_cpp/cupti/call_depth.hpp"
#include "sanitizer/_cpp/cupti/calls.hpp"

namespace tcuda::cupti {
namespace {

// The watch of the subscription, and the threads that are in a callback. A callback may begin after its subscription
// has ended, so the callbacks use nothing that is ever destroyed.
std::atomic<watch::DriverWatch *> current_watch{nullptr};
std::atomic<std::size_t> in_callbacks{0};

class InCallback {
public:
    InCallback() { in_callbacks.fetch_add(1); }
    ~InCallback() { in_callbacks.fetch_sub(1); }
    InCallback(const InCallback &) = delete;
    InCallback &operator=(const InCallback &) = delete;

    watch::DriverWatch *watch() const { return current_watch.load(); }
};

Sides side_of(const ApiCall &call) {
    if (call.site == site_enter)
        return at_entry;
    return call.result != nullptr && *static_cast<const int *>(call.result) == success ? after_success : after_failure;
}

// The call that the watch learns of; null if the watch does not learn of this side.
const WatchedCall *told(std::uint32_t id, const ApiCall &call) {
    const WatchedCall *const watched = watched_call(id);
    return watched != nullptr && (watched->sides & side_of(call)) != 0 ? watched : nullptr;
}

void tell_call(watch::DriverWatch &watch, const WatchedCall &watched, const ApiCall &call) {
    const Sides side = side_of(call);
    watched.tell({watch, call.parameters, call.context, call.symbol_name, watched.per_thread, side == at_entry,
                  side == after_failure});
}

// CUPTI calls this function at both sides of a call. The watch learns of most calls at one side only, so the callback
// for the other side returns as early as possible.
void callback(void *, int domain, std::uint32_t id, const void *data) {
    if (data == nullptr)
        return;
    if (domain == domain_driver)
        CallDepth::of_thread().count(static_cast<const ApiCall *>(data)->site == site_enter);
    const WatchedCall *const watched =
        domain == domain_driver ? told(id, *static_cast<const ApiCall *>(data)) : nullptr;
    if (domain == domain_driver && watched == nullptr)
        return;
    if (Unwatched::depth() != 0 || OwnMemoryCall::is_active())
        return;
    const InCallback in_callback;
    watch::DriverWatch *const watch = in_callback.watch();
    if (watch == nullptr)
        return;
    const Unwatched own_calls; // the watch asks the driver
    try {
        if (watched != nullptr)
            tell_call(*watch, *watched, *static_cast<const ApiCall *>(data));
        else if (domain == domain_resource && id == resource_context_destroyed)
            watch->context_about_to_be_destroyed(static_cast<const Resource *>(data)->context);
    } catch (...) { // without memory of the host, the detector misses the call; the program must not notice
    }
}

// The child of a fork cannot use the devices, and nobody ends its watch.
[[maybe_unused]] const int registered = pthread_atfork(nullptr, nullptr, [] {
    current_watch.store(nullptr);
    in_callbacks.store(0);
});

} // namespace

Subscription::Subscription(const Library &library, watch::DriverWatch &watch) : library_(library), process_(getpid()) {
    if (current_watch.load() != nullptr)
        throw std::runtime_error("another race detector watches this process already");
    const WatchedCalls calls = watched_calls();
    enabled_.reserve(calls.count + 1);
    subscriber_ = library_.subscribe(callback);
    current_watch.store(&watch);
    CallDepth::begin_again();
    active_ = true;
    if (library_.enable(1, subscriber_, domain_resource, resource_context_destroyed) == ok)
        enabled_.emplace_back(domain_resource, resource_context_destroyed);
    for (const WatchedCall &call : calls) {
        const int status = library_.enable(1, subscriber_, domain_driver, call.id);
        if (status == ok) {
            enabled_.emplace_back(domain_driver, call.id);
        } else if (status != invalid_parameter) { // a library that is older than the call does not know the id
            end();
            throw std::runtime_error("CUPTI refuses to report the driver's calls: status " + std::to_string(status));
        }
    }
}

void Subscription::end() noexcept {
    if (!active_ || getpid() != process_)
        return;
    active_ = false;
    for (const auto &[domain, id] : enabled_)
        library_.enable(0, subscriber_, domain, id);
    library_.unsubscribe(subscriber_);
    current_watch.store(nullptr);
    while (in_callbacks.load() != 0)
        std::this_thread::sleep_for(std::chrono::microseconds(20));
}

} // namespace tcuda::cupti
