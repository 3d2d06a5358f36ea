#include "sanitizer/_cpp/mpi/interception.hpp"

#include <dlfcn.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <mutex>
#include <optional>
#include <string_view>
#include <type_traits>
#include <utility>

#include "sanitizer/_cpp/library_calls/import_table.hpp"
#include "sanitizer/_cpp/mpi/mpi_call.hpp"
#include "threads/published.hpp"

namespace tcuda::mpi {
namespace {

using library_calls::ImportEntry;
using library_calls::LoadedModule;

// The functions that the thunks call: with counts of 32 bits, and with counts of 64 bits.
std::array<std::array<std::atomic<std::uintptr_t>, function_count>, 2> real_functions{};

// All functions with the same number of arguments share this code.
template <class... Arguments>
[[gnu::noinline]] std::uint64_t pass_on(std::size_t function, bool large, Arguments... arguments) {
    using Real = std::uint64_t (*)(Arguments...);
    const std::uint64_t values[] = {arguments...};
    MpiCall call(functions[function], values, large);
    const auto real = reinterpret_cast<Real>(real_functions[large][function].load(std::memory_order_acquire));
    const std::uint64_t result = real(arguments...);
    call.returned(static_cast<int>(result));
    return result;
}

template <std::size_t> using Argument = std::uint64_t;

// As in the thunks of NVIDIA's libraries: MPI passes integers and pointers only, so a function of 64-bit integers takes
// and passes on all of them.
template <bool large, std::size_t function, class Arguments> struct Thunk;
template <bool large, std::size_t function, std::size_t... argument>
struct Thunk<large, function, std::index_sequence<argument...>> {
    static std::uint64_t call(Argument<argument>... arguments) { return pass_on(function, large, arguments...); }
};

template <bool large, std::size_t... function>
std::array<std::uintptr_t, function_count> thunks_of(std::index_sequence<function...>) {
    return {reinterpret_cast<std::uintptr_t>(
        &Thunk<large, function, std::make_index_sequence<functions[function].arguments>>::call)...};
}

const std::array<std::array<std::uintptr_t, function_count>, 2> thunks{
    thunks_of<false>(std::make_index_sequence<function_count>()),
    thunks_of<true>(std::make_index_sequence<function_count>())};

struct Found {
    std::size_t function;
    bool large;
};

// The function of an imported name. The names of functions with counts of 64 bits end with _c.
std::optional<Found> find_function(std::string_view name) {
    const bool large = name.size() > 2 && name.substr(name.size() - 2) == "_c";
    if (large)
        name.remove_suffix(2);
    for (std::size_t function = 0; function < function_count; ++function)
        if (functions[function].name == name)
            return Found{function, large};
    return std::nullopt;
}

struct Replaced {
    ImportEntry entry;
    std::uintptr_t before, ours;
};

struct State {
    std::mutex mutex;
    std::optional<LoadedModule> module;
    std::vector<Replaced> entries;
};

State &state() {
    static Published<State> state;
    return state.get();
}

// The library that the module calls. The library stays loaded as long as the module.
Library library_of(const LoadedModule &module) {
    const auto entries = module.imports([](const char *) { return true; });
    const auto any = std::find_if(entries.begin(), entries.end(), [](const ImportEntry &entry) {
        return entry.name == "MPI_Comm_rank" && entry.function != 0;
    });
    Library made;
    Dl_info where;
    if (any == entries.end() || dladdr(reinterpret_cast<void *>(any->function), &where) == 0)
        return made;
    void *const library = dlopen(where.dli_fname, RTLD_LAZY | RTLD_NOLOAD);
    if (library == nullptr)
        return made;
    const auto take = [library](auto *&function, const char *name) {
        function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(dlsym(library, name));
    };
    take(made.type_size, "MPI_Type_size");
    take(made.type_extent, "MPI_Type_get_extent");
    take(made.type_true_extent, "MPI_Type_get_true_extent");
    take(made.comm_rank, "MPI_Comm_rank");
    take(made.comm_size, "MPI_Comm_size");
    take(made.comm_test_inter, "MPI_Comm_test_inter");
    dlclose(library);
    // Handles of Open MPI are pointers to objects such as ompi_mpi_comm_world, handles of MPI's ABI are pointers too.
    bool is_open_mpi = module.path().find("/MPI.openmpi.") != std::string::npos;
    for (const ImportEntry &entry : entries)
        is_open_mpi = is_open_mpi || entry.name.rfind("ompi_", 0) == 0;
    const bool is_abi = module.path().find("/MPI.mpiabi.") != std::string::npos;
    made.handle_bytes = is_open_mpi || is_abi ? sizeof(void *) : 4;
    if (is_open_mpi)
        made.no_process = -2;
    else if (!is_abi)
        made.no_process = -1;
    return made;
}

} // namespace

void begin_interception() {
    State &mine = state();
    const std::lock_guard lock(mine.mutex);
    if (mine.module)
        return;
    for (const std::string &path : LoadedModule::paths()) {
        if (path.find("/mpi4py/MPI.") == std::string::npos)
            continue;
        LoadedModule module(path);
        const Library library = module ? library_of(module) : Library();
        if (!library.complete())
            continue;
        set_library(library);
        std::vector<Replaced> entries;
        for (ImportEntry &entry : module.imports([](const char *name) { return find_function(name).has_value(); })) {
            const auto found = find_function(entry.name);
            if (entry.function == 0) // a function that this library lacks
                continue;
            real_functions[found->large][found->function].store(entry.function, std::memory_order_release);
            const std::uintptr_t before = entry.word->load(std::memory_order_relaxed);
            entries.push_back({std::move(entry), before, thunks[found->large][found->function]});
        }
        {
            const LoadedModule::Unsealed unsealed(module);
            if (!unsealed)
                return;
            for (Replaced &replaced : entries)
                replaced.entry.word->store(replaced.ours, std::memory_order_release);
        }
        mine.module.emplace(std::move(module));
        mine.entries = std::move(entries);
        return;
    }
}

void end_interception() {
    State &mine = state();
    const std::lock_guard lock(mine.mutex);
    if (!mine.module)
        return;
    {
        const LoadedModule::Unsealed unsealed(*mine.module);
        if (unsealed)
            for (Replaced &replaced : mine.entries) {
                std::uintptr_t expected = replaced.ours; // somebody else may have replaced the entry since
                replaced.entry.word->compare_exchange_strong(expected, replaced.before);
            }
    }
    mine.entries.clear();
    mine.module.reset();
}

std::vector<std::string> noticed_functions() {
    State &mine = state();
    const std::lock_guard lock(mine.mutex);
    std::vector<std::string> names;
    for (const Replaced &replaced : mine.entries)
        names.push_back(replaced.entry.name);
    return names;
}

} // namespace tcuda::mpi
