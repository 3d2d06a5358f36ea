#include "sanitizer/_cpp/mpi/mpi_watch.hpp"

#include <algorithm>
#include <optional>
#include <utility>

namespace tcuda::mpi {

MpiWatch::~MpiWatch() {
    for (const auto &[request, work] : begun_)
        detector_.end_host_work(work);
}

bool MpiWatch::knows(Address address) {
    races::RaceDetector::LiveRange live;
    detector_.find_live(&address, 1, &live);
    return live.contains(address) || detector_.knows_page_locked(address);
}

bool MpiWatch::uses_protected_memory(const Uses &uses) {
    return std::any_of(uses.begin(), uses.end(), [this](const races::RaceDetector::NamedUse &named) {
        return detector_.uses_host_memory(named.use.region.begin(), named.use.region.end());
    });
}

void MpiWatch::used(std::string_view name, Uses &uses) {
    if (!uses.empty())
        tell(detector_.host_access(name, {uses.data(), uses.size()}, stack_()));
}

void MpiWatch::begun(std::string_view name, Uses &uses, Handle request) {
    if (uses.empty())
        return;
    races::RaceDetector::HostWork work = detector_.begin_host_work(name, {uses.data(), uses.size()}, stack_());
    Races found = std::exchange(work.found, {});
    {
        const std::lock_guard lock(mutex_);
        begun_.emplace(request, std::move(work));
    }
    tell(std::move(found));
}

void MpiWatch::completed(Handle request) {
    const std::lock_guard lock(mutex_);
    const auto [first, last] = begun_.equal_range(request);
    for (auto work = first; work != last; ++work)
        detector_.end_host_work(work->second);
    begun_.erase(first, last);
}

void MpiWatch::prepared(std::string_view name, Uses &uses, Handle request) {
    if (uses.empty())
        return;
    const std::lock_guard lock(mutex_);
    prepared_[request] = {std::string(name), std::move(uses)};
}

void MpiWatch::started(Handle request) {
    std::optional<Prepared> found;
    {
        const std::lock_guard lock(mutex_);
        const auto known = prepared_.find(request);
        if (known != prepared_.end())
            found = known->second;
    }
    if (found)
        begun(found->name, found->uses, request);
}

void MpiWatch::released(Handle request) {
    completed(request);
    const std::lock_guard lock(mutex_);
    prepared_.erase(request);
}

void MpiWatch::tell(Races &&races) {
    if (!races.empty())
        found_(std::move(races));
}

} // namespace tcuda::mpi
