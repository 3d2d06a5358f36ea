#include "sanitizer/_cpp/library_calls/interception.hpp"

#include <algorithm>
#include <string_view>
#include <unordered_map>

#include "sanitizer/_cpp/library_calls/known_memory.hpp"
#include "sanitizer/_cpp/library_calls/library_call.hpp"
#include "sanitizer/_cpp/library_calls/signature.hpp"
#include "sanitizer/_cpp/library_calls/thunks.hpp"
#include "threads/published.hpp"

namespace tcuda::library_calls {
namespace {

// Parts of the paths of the modules that call NVIDIA's libraries. The libraries' calls of each other are not of
// interest: the outer call knows what is read and written.
constexpr std::string_view callers[] = {
    "/cupy_backends/cuda/libs/cublas.",
    "/cupy_backends/cuda/libs/curand.",
    "/cupy_backends/cuda/libs/cusolver.",
    "/cupy_backends/cuda/libs/nccl.",
    "/cupy_backends/cuda/libs/cusparse.",
    "/cupy_backends/cuda/libs/cutensor.",
    "/cupy/cuda/cufft.",
    "/cupy/cuda/thrust.",
    "/cupy/cuda/cub.",
    "/cupyx/_cusolver.",
    "/libtorch_cuda.so",
    "/libtorch_cuda_linalg.so",
    "/libtorch_cuda_cpp.so",
    "/libtorch_cuda_cu.so",
};

const std::unordered_map<std::string_view, std::size_t> &places() {
    using Places = std::unordered_map<std::string_view, std::size_t>;
    static Published<const Places> map;
    return map.get([] {
        auto made = std::make_unique<Places>();
        for (std::size_t index = 0; index < signatures().size(); ++index)
            made->emplace(signatures()[index].name, index);
        return made.release();
    });
}

} // namespace

std::uintptr_t noting_function(const std::string &name, std::uintptr_t address) {
    const auto found = places().find(name);
    const std::uintptr_t ours = found == places().end() ? 0 : thunk(found->second, address);
    return ours != 0 ? ours : address;
}

Interception &Interception::instance() {
    static Published<Interception> interception;
    return interception.get();
}

void Interception::begin(const std::vector<std::string> &modules) {
    const std::lock_guard lock(mutex_);
    const bool more = std::any_of(modules.begin(), modules.end(), [this](const std::string &name) {
        return std::find(more_.begin(), more_.end(), name) == more_.end();
    });
    if (users_++ != 0 && !more)
        return look();
    if (users_ == 1) {
        on_.store(true, std::memory_order_relaxed);
        KnownMemory::instance().clear();
        LibraryCall::begin_era();
    }
    more_.insert(more_.end(), modules.begin(), modules.end());
    loads_ = 0;
    look();
}

void Interception::end() {
    const std::lock_guard lock(mutex_);
    if (users_ == 0 || --users_ != 0)
        return;
    on_.store(false, std::memory_order_relaxed);
    for (Watched &watched : watched_) {
        const LoadedModule::Unsealed unsealed(watched.module);
        if (!unsealed)
            continue;
        for (Replaced &replaced : watched.entries) {
            // Somebody else may have replaced the entry since.
            std::uintptr_t expected = replaced.ours;
            replaced.entry.word->compare_exchange_strong(expected, replaced.before);
        }
    }
    watched_.clear();
    more_.clear();
    KnownMemory::instance().clear();
}

void Interception::look_again() {
    const std::lock_guard lock(mutex_);
    if (users_ != 0)
        look();
}

std::vector<std::pair<std::string, std::vector<std::string>>> Interception::intercepted() const {
    const std::lock_guard lock(mutex_);
    std::vector<std::pair<std::string, std::vector<std::string>>> list;
    for (const Watched &watched : watched_) {
        list.emplace_back(watched.module.path(), std::vector<std::string>());
        for (const Replaced &replaced : watched.entries)
            list.back().second.push_back(replaced.entry.name);
    }
    return list;
}

void Interception::look() {
    const unsigned long long loads = LoadedModule::loads();
    if (loads == loads_)
        return;
    loads_ = loads;
    for (const std::string &path : LoadedModule::paths()) {
        const bool seen = std::any_of(watched_.begin(), watched_.end(),
                                      [&](const Watched &watched) { return watched.module.path() == path; });
        if (!seen && is_wanted(path))
            intercept(path);
    }
}

bool Interception::is_wanted(const std::string &path) const {
    const auto is_in_path = [&path](std::string_view part) { return path.find(part) != path.npos; };
    return std::any_of(std::begin(callers), std::end(callers), is_in_path) ||
           std::any_of(more_.begin(), more_.end(), is_in_path);
}

void Interception::intercept(const std::string &path) {
    LoadedModule module(path);
    if (!module)
        return;
    Watched watched{std::move(module), {}};
    const auto is_known = [](const char *name) { return places().count(name) != 0; };
    for (ImportEntry &entry : watched.module.imports(is_known)) {
        const std::uintptr_t ours = thunk(places().at(entry.name), entry.function);
        if (ours == 0)
            continue;
        const std::uintptr_t before = entry.word->load(std::memory_order_relaxed);
        watched.entries.push_back({std::move(entry), before, ours});
    }
    if (!watched.entries.empty()) {
        const LoadedModule::Unsealed unsealed(watched.module);
        if (unsealed)
            for (Replaced &replaced : watched.entries)
                // The loader may bind a lazy entry at this moment; a call through the old word is right, too.
                replaced.entry.word->store(replaced.ours, std::memory_order_release);
        else
            watched.entries.clear();
    }
    watched_.push_back(std::move(watched));
}

} // namespace tcuda::library_calls
