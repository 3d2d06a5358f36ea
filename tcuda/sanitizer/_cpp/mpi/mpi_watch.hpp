// What the calls of MPI mean for the race detector.
#pragma once

#include <functional>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "sanitizer/_cpp/mpi/library.hpp"
#include "sanitizer/_cpp/order/race_detector.hpp"

namespace tcuda::mpi {

// The memory that a call uses.
using Uses = std::vector<races::RaceDetector::NamedUse>;

// Tells a detector what the program does with MPI. Any thread may call any function. No lock is held while `stack` and
// `found` are called.
class MpiWatch {
public:
    using Races = races::RaceDetector::Races;

    // `detector` must outlive the watch. `stack` returns the stack of the thread, `found` gets new races.
    MpiWatch(races::RaceDetector &detector, StackId (*stack)(), std::function<void(Races &&)> found)
        : detector_(detector), stack_(stack), found_(std::move(found)) {}
    ~MpiWatch();
    MpiWatch(const MpiWatch &) = delete;
    MpiWatch &operator=(const MpiWatch &) = delete;

    // Whether the detector watches the memory at an address.
    bool knows(Address);

    // Whether pages of the memory may be protected, because a copy uses them.
    bool uses_protected_memory(const Uses &);

    // A call uses memory until it returns.
    void used(std::string_view name, Uses &);
    // A request uses memory from begun() to completed(). Several requests have the same handle if the library has
    // completed the requests at once. completed() then counts for all of these requests.
    void begun(std::string_view name, Uses &, Handle request);
    void completed(Handle request);
    // A request that started() begins again and again, until released().
    void prepared(std::string_view name, Uses &, Handle request);
    void started(Handle request);
    void released(Handle request);

private:
    struct Prepared {
        std::string name;
        Uses uses;
    };

    void tell(Races &&);

    races::RaceDetector &detector_;
    StackId (*const stack_)();
    const std::function<void(Races &&)> found_;
    std::mutex mutex_;
    std::unordered_multimap<Handle, races::RaceDetector::HostWork> begun_;
    std::unordered_map<Handle, Prepared> prepared_;
};

} // namespace tcuda::mpi
