// The ledgers of all devices, and the source of their memory.
#pragma once

#include <algorithm>
#include <atomic>
#include <deque>
#include <exception>
#include <memory>
#include <mutex>
#include <vector>

#include "driver/capture_gate.hpp"
#include "memory/host_allocator/host_allocator.hpp"
#include "memory/ledger/device_ledger.hpp"
#include "memory/ledger/uncached_source.hpp"

namespace tcuda {

// `mutex_` guards the choice of the source. The frees and allocations of a device take the lock of its DeviceLedger
// only.
class Ledger {
public:
    Ledger(Driver &driver, int devices, const Settings &settings)
        : driver_(driver), host_(driver, devices, gate_, [this](int device) { return !of(device).is_capturing(); }) {
        for (int device = 0; device < devices; ++device)
            ledgers_.push_back(std::make_unique<DeviceLedger>(device, driver, settings, gate_));
        uncached_ = std::make_shared<UncachedSource>(driver);
        chosen_.push_back(nullptr);
        source_ = &chosen_.back();
    }

    // Takes the device into use: memory that was imported before becomes accessible to the device. Throws DriverError.
    void use(int device) {
        if (const int status = driver_.use(device))
            throw DriverError(status, "taking the device into use");
    }

    // Makes the context of the device current in this thread if no context is current. Returns a status.
    int enter(int device) { return driver_.enter(device); }

    int devices() const { return static_cast<int>(ledgers_.size()); }
    DeviceLedger &of(int device) { return *ledgers_.at(static_cast<std::size_t>(device)); }

    Address allocate(int device, std::size_t size, Stream stream, std::size_t *block_size = nullptr,
                     Relief *relief = nullptr) {
        const bool caching = caching_.load(std::memory_order_relaxed);
        const auto &source = caching ? *source_.load(std::memory_order_acquire) : uncached_;
        return of(device).allocate(size, stream, source, block_size, relief);
    }

    // False if no live allocation of any device begins at `address`.
    bool free(Address address) noexcept {
        for (const auto &ledger : ledgers_)
            if (ledger->free(address))
                return true;
        return false;
    }

    // Lets allocations come from `source` from now on, or from the caching allocator if `source` is null. False, with
    // nothing changed, if there was an allocation before.
    bool change_source(std::shared_ptr<ExternalSource> source) {
        const std::lock_guard lock(mutex_);
        for (const auto &ledger : ledgers_)
            if (ledger->used())
                return false;
        chosen_.push_back(std::move(source));
        source_.store(&chosen_.back(), std::memory_order_release);
        return true;
    }

    void enable_caching(bool enabled) { caching_.store(enabled, std::memory_order_relaxed); }
    bool caching() const { return caching_.load(std::memory_order_relaxed); }

    // See Sleeper::sleep(). Waits for the work of all devices, because each may use the memory of its peers.
    Sleeper::Refusal sleep(int device, PoolId id, bool keep, const std::vector<Address> &shared) {
        if (std::any_of(ledgers_.begin(), ledgers_.end(), [](const auto &ledger) { return ledger->is_capturing(); }))
            return Sleeper::Refusal::capture;
        for (const auto &ledger : ledgers_)
            ledger->wait_for_work();
        return of(device).sleep(id, keep, shared);
    }

    // Captures, on the streams of all devices. prepare_capture() is called before `stream` begins to capture, and
    // begin_capture() after that. The result is the number of the capture.
    void prepare_capture() {
        for (const auto &ledger : ledgers_)
            ledger->prepare_capture();
    }
    CaptureId begin_capture(PoolId id, int device, Stream stream) {
        CaptureId capture = 0;
        if (const int status = driver_.capture_of(device, stream, &capture))
            throw DriverError(status, "asking the driver for a capture");
        std::size_t begun = 0;
        gate_.begin_capture();
        try {
            for (; begun < ledgers_.size(); ++begun)
                ledgers_[begun]->begin_capture(id, capture);
        } catch (...) {
            gate_.end_capture();
            for (std::size_t device = 0; device < begun; ++device) {
                ledgers_[device]->end_capture(capture);
                ledgers_[device]->release_graph(id, {}, false);
            }
            throw;
        }
        return capture;
    }
    void end_capture(CaptureId capture) noexcept {
        if (has_capture(capture))
            gate_.end_capture();
        for (const auto &ledger : ledgers_)
            ledger->end_capture(capture);
    }
    // The body of a conditional node: `stream` has begun to capture a part of `capture`. Returns the number of the
    // part.
    CaptureId begin_part(CaptureId capture, int device, Stream stream) {
        CaptureId part = 0;
        if (const int status = driver_.capture_of(device, stream, &part))
            throw DriverError(status, "asking the driver for a capture");
        try {
            for (const auto &ledger : ledgers_)
                ledger->begin_part(capture, part);
        } catch (...) {
            end_part(part);
            throw;
        }
        return part;
    }
    void end_part(CaptureId part) noexcept {
        for (const auto &ledger : ledgers_)
            ledger->end_part(part);
    }
    bool has_capture(CaptureId capture) {
        return std::any_of(ledgers_.begin(), ledgers_.end(),
                           [&](const auto &ledger) { return ledger->has_capture(capture); });
    }
    std::vector<Address> hold(const std::vector<Address> &addresses, CaptureId capture) {
        std::vector<Address> held;
        for (const auto &ledger : ledgers_) {
            const std::vector<Address> own = ledger->hold(addresses, capture);
            held.insert(held.end(), own.begin(), own.end());
        }
        const std::vector<Address> own = host_.hold(addresses);
        held.insert(held.end(), own.begin(), own.end());
        return held;
    }
    void release_holds(const std::vector<Address> &held, bool replayed) {
        host_.release(held);
        for_each_ledger([&](DeviceLedger &ledger) { ledger.release_holds(held, replayed); });
    }
    void release_graph(PoolId id, const std::vector<Address> &held, bool replayed) {
        host_.release(held);
        for_each_ledger([&](DeviceLedger &ledger) { ledger.release_graph(id, held, replayed); });
    }

    // While the result lives, the events that this thread causes have the stack of the caller in the histories. All
    // devices note the same stacks.
    NotedCall noted_call() const {
        const bool recording = !ledgers_.empty() && ledgers_.front()->records_stacks();
        return {recording, recording ? ledgers_.front()->stack(Stacks::all) : 0};
    }

    std::uint64_t next_pool() { return pools_.fetch_add(1) + 1; }

    // Page-locked memory of the host
    HostAllocator &host() { return host_; }

    // Between begin_capture() and end_capture() of the gate, the ledger records no event that a capture forbids.
    CaptureGate &gate() { return gate_; }

    // The end of the process
    void abandon() {
        host_.abandon();
        each([](DeviceLedger &ledger) { ledger.abandon(); });
    }
    void close() {
        host_.close();
        each([](DeviceLedger &ledger) { ledger.close(); });
    }

    template <typename Visit> void each(Visit visit) {
        for (const auto &ledger : ledgers_)
            visit(*ledger);
    }

private:
    // Calls `function` for each device, also after a failure, and then throws the last failure.
    template <typename Function> void for_each_ledger(Function function) {
        std::exception_ptr failure;
        for (const auto &ledger : ledgers_) {
            try {
                function(*ledger);
            } catch (...) {
                failure = std::current_exception();
            }
        }
        if (failure)
            std::rethrow_exception(failure);
    }

    Driver &driver_;
    CaptureGate gate_;
    std::mutex mutex_;
    std::shared_ptr<ExternalSource> uncached_;
    std::deque<std::shared_ptr<ExternalSource>> chosen_; // every source that was ever chosen; references stay valid
    std::atomic<const std::shared_ptr<ExternalSource> *> source_;
    std::vector<std::unique_ptr<DeviceLedger>> ledgers_;
    HostAllocator host_; // declared after the ledgers, which it asks for captures
    std::atomic<bool> caching_{true};
    std::atomic<std::uint64_t> pools_{0};
};

} // namespace tcuda
