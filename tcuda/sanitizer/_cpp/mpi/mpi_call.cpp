#include "sanitizer/_cpp/mpi/mpi_call.hpp"

#include <pthread.h>

#include <atomic>
#include <chrono>
#include <exception>
#include <thread>

namespace tcuda::mpi {
namespace {

using races::AccessKind;

Library the_library; // is set before the first thunk is used
std::atomic<MpiWatch *> current{nullptr};
std::atomic<std::size_t> telling{0};

// The time in which the watch learns of something.
class Telling {
public:
    Telling() { telling.fetch_add(1); }
    ~Telling() { telling.fetch_sub(1); }
    Telling(const Telling &) = delete;
    Telling &operator=(const Telling &) = delete;
    MpiWatch *watch() const { return current.load(); }
};

[[maybe_unused]] const int registered = pthread_atfork(nullptr, nullptr, [] {
    current.store(nullptr);
    telling.store(0);
});

// MPI_IN_PLACE and MPI_BOTTOM, in all libraries, are no addresses of memory.
bool is_memory(std::uint64_t address) { return address >= 4096 && address != ~std::uint64_t(0); }

} // namespace

void set_library(const Library &library) { the_library = library; }

void set_watch(MpiWatch *watch) {
    current.store(watch);
    while (watch == nullptr && telling.load() != 0)
        std::this_thread::sleep_for(std::chrono::microseconds(20));
}

MpiCall::MpiCall(const Function &function, const std::uint64_t *values, bool large) noexcept
    : function_(function), values_(values), large_(large) {
    const Telling telling;
    MpiWatch *const watch = telling.watch();
    if (watch == nullptr)
        return;
    try {
        if (function.action == Action::use || function.action == Action::begin || function.action == Action::prepare) {
            int rank = 0, size = 1, inter = 0;
            if (function.is_collective()) {
                const Handle comm = values[function.comm];
                if (the_library.comm_test_inter(comm, &inter) != 0 || inter != 0 || // the groups have other rules
                    the_library.comm_rank(comm, &rank) != 0 || the_library.comm_size(comm, &size) != 0)
                    return;
            }
            for (const Buffer &buffer : function.buffers)
                add(*watch, buffer, rank, size);
            if (watch->uses_protected_memory(uses_))
                pause_.emplace();
            if (function.action == Action::use)
                watch->used(function.name, uses_);
        } else {
            read_requests();
        }
    } catch (const std::exception &) { // without memory of the host, the detector misses the call
    }
}

void MpiCall::returned(int status) noexcept {
    pause_.reset();
    const Telling telling;
    MpiWatch *const watch = telling.watch();
    if (watch == nullptr)
        return;
    try {
        const auto made = [&] {
            return the_library.handle_at(reinterpret_cast<const void *>(values_[function_.request]));
        };
        switch (function_.action) {
        case Action::use:
            break;
        case Action::begin:
            if (status == 0)
                watch->begun(function_.name, uses_, made());
            break;
        case Action::prepare:
            if (status == 0)
                watch->prepared(function_.name, uses_, made());
            break;
        case Action::start:
        case Action::start_all:
            for (const Handle request : requests_)
                watch->started(request);
            break;
        case Action::release:
            for (const Handle request : requests_)
                watch->released(request);
            break;
        default:
            tell_complete(*watch, status);
        }
    } catch (const std::exception &) { // as above
    }
}

// After an error, no request counts as one in progress.
void MpiCall::tell_complete(MpiWatch &watch, int status) {
    const auto some = [&](std::size_t count_argument) {
        const int count = *number_in(count_argument), *const places = number_in(count_argument + 1);
        for (int place = 0; place < count; ++place) // none, if the count is MPI_UNDEFINED
            watch.completed(requests_.at(static_cast<std::size_t>(places[place])));
    };
    const auto one = [&](int place) {
        if (place >= 0)
            watch.completed(requests_.at(static_cast<std::size_t>(place)));
    };
    const auto all = [&] {
        for (const Handle request : requests_)
            watch.completed(request);
    };
    if (status != 0)
        return all();
    switch (function_.action) {
    case Action::wait:
    case Action::wait_all:
        return all();
    case Action::wait_any:
        return one(*number_in(2));
    case Action::wait_some:
    case Action::test_some:
        return some(2);
    case Action::test:
    case Action::status:
        return *number_in(1) != 0 ? all() : void();
    case Action::test_all:
        return *number_in(2) != 0 ? all() : void();
    case Action::test_any:
        return *number_in(3) != 0 ? one(*number_in(2)) : void();
    default:
        return;
    }
}

// A completed request has another handle after the call.
void MpiCall::read_requests() {
    const std::uint64_t place = values_[function_.request];
    if (function_.action == Action::status) {
        requests_.push_back(the_library.handle_bytes == 4 ? static_cast<std::uint32_t>(place) : place);
        return;
    }
    const bool is_array = function_.request == 1; // after the number of the requests
    const std::int64_t count = is_array ? number(values_[0]) : 1;
    for (std::int64_t request = 0; request < count; ++request)
        requests_.push_back(
            the_library.handle_at(reinterpret_cast<const void *>(place), static_cast<std::size_t>(request)));
}

void MpiCall::add(MpiWatch &watch, const Buffer &buffer, int rank, int size) {
    if (buffer.kind == Kind::none || !is_memory(values_[buffer.address]))
        return;
    if (buffer.who == Who::to || buffer.who == Who::from) {
        const auto peer = static_cast<int>(values_[buffer.peer]);
        // A negative number is MPI_PROC_NULL, or MPI_ANY_SOURCE.
        if (peer < 0 && (buffer.who == Who::to || !the_library.no_process || peer == *the_library.no_process))
            return;
    }
    if (buffer.who == Who::root || buffer.who == Who::others) {
        const bool is_root = static_cast<int>(values_[buffer.peer]) == rank;
        if (is_root != (buffer.who == Who::root))
            return;
    }
    if (!watch.knows(values_[buffer.address]))
        return;
    const std::optional<Type> type = the_library.type(values_[buffer.type]);
    if (!type)
        return;
    const std::uint64_t counts = values_[buffer.count];
    switch (buffer.counted) {
    case Counted::once:
        return add_items(buffer, *type, 0, number(counts));
    case Counted::each_rank:
        return add_items(buffer, *type, 0, number(counts) * size);
    case Counted::own_share:
        return add_items(buffer, *type, 0, number_at(counts, static_cast<std::size_t>(rank)));
    case Counted::shares: {
        std::int64_t sum = 0;
        for (int other = 0; other < size; ++other)
            sum += number_at(counts, static_cast<std::size_t>(other));
        return add_items(buffer, *type, 0, sum);
    }
    case Counted::by_rank:
        for (int other = 0; other < size; ++other)
            add_items(buffer, *type, number_at(values_[buffer.displacements], static_cast<std::size_t>(other)),
                      number_at(counts, static_cast<std::size_t>(other)));
    }
}

// An item with gaps may leave any of its bytes alone.
void MpiCall::add_items(const Buffer &buffer, const Type &type, std::int64_t first, std::int64_t count) {
    if (count <= 0)
        return;
    const Address begin = values_[buffer.address] + static_cast<Address>(first * type.extent);
    races::RaceDetector::NamedUse &named = uses_.emplace_back();
    named.use.kind = buffer.kind == Kind::read ? AccessKind::read : AccessKind::write;
    named.label = buffer.label;
    named.use.possible = type.has_gaps();
    if (named.use.possible)
        named.use.region.set(begin + static_cast<Address>(type.begin), 1,
                             {{(count - 1) * type.extent + static_cast<std::int64_t>(type.true_extent), 1}});
    else
        named.use.region.set(begin, type.size, {{count, static_cast<std::int64_t>(type.size)}});
}

std::int64_t MpiCall::number(std::uint64_t value) const {
    return large_ ? static_cast<std::int64_t>(value) : static_cast<std::int32_t>(value);
}

std::int64_t MpiCall::number_at(std::uint64_t array, std::size_t place) const {
    return large_ ? reinterpret_cast<const std::int64_t *>(array)[place]
                  : reinterpret_cast<const std::int32_t *>(array)[place];
}

} // namespace tcuda::mpi
