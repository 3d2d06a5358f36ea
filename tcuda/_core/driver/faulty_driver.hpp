// A driver table for tests: the calls of another table, one of which fails, with a count of each.
#pragma once

#include <atomic>
#include <functional>
#include <limits>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <utility>

#include "driver/driver.hpp"

namespace tcuda {

class FaultyDriver : public Driver {
public:
    explicit FaultyDriver(Driver &driver) : driver_(driver) {}

    // Lets the entry of that name fail once with `status`, after `calls` calls that succeed.
    void fail(const std::string &entry, int calls, int status) {
        entry_ = entry;
        status_ = status;
        left_ = calls;
    }
    // Lets every call for memory wait until a thread of its own has called `function`. The calls of CUDA wait in the
    // same way: cuMemFree() waits for the work of streams, and that work can be a function of the host.
    void meanwhile(std::function<void()> function) { meanwhile_ = std::move(function); }
    // Lets the driver know as little of the uses of host memory as CUDA does.
    void forget_host_uses() { forgets_host_uses_ = true; }
    // Lets each question about an event wait for the event. So memory that no work uses is unused at once, as on
    // emulated devices: an event of CUDA may be complete a moment later, also on an idle device.
    void wait_for_events() { waits_for_events_ = true; }
    // Lets `node` be the NUMA node of all devices.
    void use_host_node(int node) { host_node_ = node; }
    // Lets the host have no more than `most` bytes of page-locked memory. The driver tells what is left of them only if
    // `tells`.
    void limit_host(std::size_t most, bool tells) {
        const std::lock_guard lock(mutex_);
        most_host_bytes_ = most;
        tells_host_room_ = tells;
    }
    // Whether the failure that fail() asked for last has happened.
    bool failed() const { return left_ < 0; }

    // How many calls of the entry of that name have succeeded.
    int successes(const std::string &entry) {
        const std::lock_guard lock(mutex_);
        return successes_[entry];
    }

    int enter(int device) override {
        return run("enter", [&] { return driver_.enter(device); });
    }
    int allocate(int device, std::size_t size, Address *address) override {
        return waiting("allocate", [&] { return driver_.allocate(device, size, address); });
    }
    int free(int device, Address address) override {
        return waiting("free", [&] { return driver_.free(device, address); });
    }
    int memory_info(int device, std::size_t *free, std::size_t *total) override {
        return waiting("memory_info", [&] { return driver_.memory_info(device, free, total); });
    }
    void adopt(int device, Address address, std::size_t size) override { driver_.adopt(device, address, size); }
    void disown(int device, Address address) override { driver_.disown(device, address); }
    void finish(int device) override { driver_.finish(device); }
    int granularity(int device, std::size_t *bytes) override {
        return waiting("granularity", [&] { return driver_.granularity(device, bytes); });
    }
    int reserve(int device, std::size_t size, Address *address) override {
        return waiting("reserve", [&] { return driver_.reserve(device, size, address); });
    }
    int release(int device, Address address, std::size_t size) override {
        return waiting("release", [&] { return driver_.release(device, address, size); });
    }
    int create(int device, std::size_t size, Physical *physical) override {
        return waiting("create", [&] { return driver_.create(device, size, physical); });
    }
    int destroy(int device, Physical physical) override {
        return waiting("destroy", [&] { return driver_.destroy(device, physical); });
    }
    int map(int device, Address address, std::size_t size, Physical physical) override {
        return waiting("map", [&] { return driver_.map(device, address, size, physical); });
    }
    int unmap(int device, Address address, std::size_t size) override {
        return waiting("unmap", [&] { return driver_.unmap(device, address, size); });
    }
    int allocation_of(int device, Address address, Address *begin, std::size_t *size) override {
        return waiting("allocation_of", [&] { return driver_.allocation_of(device, address, begin, size); });
    }
    int export_physical(int device, Physical physical, int *descriptor) override {
        return waiting("export_physical", [&] { return driver_.export_physical(device, physical, descriptor); });
    }
    int import_physical(int device, int descriptor, Physical *physical) override {
        return waiting("import_physical", [&] { return driver_.import_physical(device, descriptor, physical); });
    }
    // The same names as map() and unmap(): a test means both.
    int map_imported(int device, Address address, std::size_t size, Physical physical) override {
        return waiting("map", [&] { return driver_.map_imported(device, address, size, physical); });
    }
    int unmap_imported(int device, Address address, std::size_t size) override {
        return waiting("unmap", [&] { return driver_.unmap_imported(device, address, size); });
    }
    int use(int device) override {
        return run("use", [&] { return driver_.use(device); });
    }
    int copy(int device, Address to, Address from, std::size_t size) override {
        return waiting("copy", [&] { return driver_.copy(device, to, from, size); });
    }
    // Waits for the copies in any case: where the wait of CUDA fails, nothing runs any more. A GPU that still copied
    // would meet memory that the caller has unmapped by then.
    int finish_copies(int device) override {
        const int finished = driver_.finish_copies(device);
        return waiting("finish_copies", [&] { return finished; });
    }
    int host_allocate(std::size_t size, Address *address) override {
        return waiting("host_allocate", [&] {
            return within_host(size, address, [&] { return driver_.host_allocate(size, address); });
        });
    }
    int host_free(Address address, std::size_t size) override {
        return waiting("host_free", [&] { return leaving_host(address, driver_.host_free(address, size)); });
    }
    int host_register(Address address, std::size_t size) override {
        return waiting("host_register", [&] {
            return within_host(size, &address, [&] { return driver_.host_register(address, size); });
        });
    }
    int host_unregister(Address address) override {
        return waiting("host_unregister", [&] { return leaving_host(address, driver_.host_unregister(address)); });
    }
    std::size_t host_room() override {
        const std::lock_guard lock(mutex_);
        return tells_host_room_ ? most_host_bytes_ - host_bytes_ : driver_.host_room();
    }
    int host_node() override { return host_node_ >= 0 ? host_node_ : driver_.host_node(); }
    bool knows_host_uses() const override { return !forgets_host_uses_ && driver_.knows_host_uses(); }
    int query_host(Address address, std::size_t size) override {
        return run("query_host", [&] { return driver_.query_host(address, size); });
    }
    int record(int device, Stream stream, Event *event) override {
        return run("record", [&] { return driver_.record(device, stream, event); });
    }
    int record_device(int device, Event *event) override {
        return run("record_device", [&] { return driver_.record_device(device, event); });
    }
    int query(int device, Event event) override {
        return run("query", [&] {
            return waits_for_events_ ? driver_.synchronize(device, event) : driver_.query(device, event);
        });
    }
    int synchronize(int device, Event event) override {
        return run("synchronize", [&] { return driver_.synchronize(device, event); });
    }
    int destroy_event(int device, Event event) override {
        return run("destroy_event", [&] { return driver_.destroy_event(device, event); });
    }
    int query_stream(int device, Stream stream) override {
        return run("query_stream", [&] { return driver_.query_stream(device, stream); });
    }
    int synchronize_stream(int device, Stream stream) override {
        return run("synchronize_stream", [&] { return driver_.synchronize_stream(device, stream); });
    }
    int synchronize_device(int device) override {
        return run("synchronize_device", [&] { return driver_.synchronize_device(device); });
    }
    int fill(int device, Stream stream, Address address, std::size_t size, unsigned char value) override {
        return run("fill", [&] { return driver_.fill(device, stream, address, size, value); });
    }
    int capture_of(int device, Stream stream, CaptureId *capture) override {
        return run("capture_of", [&] { return driver_.capture_of(device, stream, capture); });
    }

private:
    template <typename Call> int waiting(const char *entry, Call call) {
        if (meanwhile_)
            std::thread([&] { meanwhile_(); }).join();
        return run(entry, call);
    }
    template <typename Call> int run(const char *entry, Call call) {
        if (entry_ == entry && left_-- == 0)
            return status_;
        const int status = call();
        const std::lock_guard lock(mutex_);
        successes_[entry] += status == success;
        return status;
    }

    // Takes `size` bytes of the host by a call that stores their address.
    template <typename Call> int within_host(std::size_t size, const Address *address, Call call) {
        {
            const std::lock_guard lock(mutex_);
            if (size > most_host_bytes_ - host_bytes_)
                return out_of_memory;
            host_bytes_ += size;
        }
        const int status = call();
        const std::lock_guard lock(mutex_);
        if (status == success)
            host_sizes_[*address] = size;
        else
            host_bytes_ -= size;
        return status;
    }
    // Takes note that memory of the host went back if `status` is success, and returns `status`.
    int leaving_host(Address address, int status) {
        const std::lock_guard lock(mutex_);
        if (const auto found = host_sizes_.find(address); status == success && found != host_sizes_.end()) {
            host_bytes_ -= found->second;
            host_sizes_.erase(found);
        }
        return status;
    }

    Driver &driver_;
    std::string entry_;
    int status_ = success;
    std::atomic<int> left_{0};
    std::function<void()> meanwhile_;
    bool forgets_host_uses_ = false, waits_for_events_ = false;
    int host_node_ = -1;
    std::mutex mutex_; // guards all members from here on; nothing is called under the mutex
    std::map<std::string, int> successes_;
    std::map<Address, std::size_t> host_sizes_; // of the page-locked memory that this driver has taken
    std::size_t host_bytes_ = 0, most_host_bytes_ = std::numeric_limits<std::size_t>::max();
    bool tells_host_room_ = false;
};

} // namespace tcuda
