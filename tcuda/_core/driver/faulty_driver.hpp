// A driver table for tests: the calls of another table, one of which fails, with a count of each.
#pragma once

#include <atomic>
#include <functional>
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
    // Whether the failure that fail() asked for last has happened.
    bool failed() const { return left_ < 0; }

    // How many calls of the entry of that name have succeeded.
    int successes(const std::string &entry) {
        const std::lock_guard lock(mutex_);
        return successes_[entry];
    }

    int enter(int d) override { return run("enter", [&] { return driver_.enter(d); }); }
    int allocate(int d, std::size_t s, Address *a) override { return waiting("allocate", [&] { return driver_.allocate(d, s, a); }); }
    int free(int d, Address a) override { return waiting("free", [&] { return driver_.free(d, a); }); }
    int memory_info(int d, std::size_t *f, std::size_t *t) override { return waiting("memory_info", [&] { return driver_.memory_info(d, f, t); }); }
    int granularity(int d, std::size_t *b) override { return waiting("granularity", [&] { return driver_.granularity(d, b); }); }
    int reserve(int d, std::size_t s, Address *a) override { return waiting("reserve", [&] { return driver_.reserve(d, s, a); }); }
    int release(int d, Address a, std::size_t s) override { return waiting("release", [&] { return driver_.release(d, a, s); }); }
    int create(int d, std::size_t s, Physical *p) override { return waiting("create", [&] { return driver_.create(d, s, p); }); }
    int destroy(int d, Physical p) override { return waiting("destroy", [&] { return driver_.destroy(d, p); }); }
    int map(int d, Address a, std::size_t s, Physical p) override { return waiting("map", [&] { return driver_.map(d, a, s, p); }); }
    int unmap(int d, Address a, std::size_t s) override { return waiting("unmap", [&] { return driver_.unmap(d, a, s); }); }
    int record(int d, Stream s, Event *e) override { return run("record", [&] { return driver_.record(d, s, e); }); }
    int query(int d, Event e) override { return run("query", [&] { return driver_.query(d, e); }); }
    int synchronize(int d, Event e) override { return run("synchronize", [&] { return driver_.synchronize(d, e); }); }
    int destroy_event(int d, Event e) override { return run("destroy_event", [&] { return driver_.destroy_event(d, e); }); }
    int query_stream(int d, Stream s) override { return run("query_stream", [&] { return driver_.query_stream(d, s); }); }
    int synchronize_stream(int d, Stream s) override { return run("synchronize_stream", [&] { return driver_.synchronize_stream(d, s); }); }
    int synchronize_device(int d) override { return run("synchronize_device", [&] { return driver_.synchronize_device(d); }); }
    int capture_of(int d, Stream s, CaptureId *c) override { return run("capture_of", [&] { return driver_.capture_of(d, s, c); }); }

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

    Driver &driver_;
    std::string entry_;
    int status_ = success;
    std::atomic<int> left_{0};
    std::mutex mutex_; // guards `successes_`; nothing is called under the mutex
    std::map<std::string, int> successes_;
    std::function<void()> meanwhile_;
};

} // namespace tcuda
