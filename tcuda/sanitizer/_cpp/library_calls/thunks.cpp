#include "sanitizer/_cpp/library_calls/thunks.hpp"

#include <array>
#include <atomic>
#include <type_traits>
#include <utility>

#include "sanitizer/_cpp/library_calls/library_call.hpp"
#include "sanitizer/_cpp/library_calls/table.hpp"
#include "threads/published.hpp"

namespace tcuda::library_calls {
namespace {

constexpr std::size_t versions = 2; // of each function

struct Connection {
    std::atomic<std::uintptr_t> real{0};
    std::atomic<std::uint64_t> calls{0};
};
std::array<std::array<Connection, function_count>, versions> connections;

template <std::size_t function, std::size_t argument>
using Passed =
    std::conditional_t<(functions[function].floats >> argument & 1) != 0, float,
                       std::conditional_t<(functions[function].doubles >> argument & 1) != 0, double, std::uint64_t>>;

std::uint64_t value_of(std::uint64_t argument) { return argument; }
std::uint64_t value_of(double) { return 0; } // no role needs the number

// All functions with the same types of arguments share this code, because the compiler takes long for a copy in each
// thunk.
template <class... Arguments>
[[gnu::noinline]] std::uint64_t pass_on(std::size_t function, Connection &connection, Arguments... arguments) {
    using Real = std::uint64_t (*)(Arguments...);
    const std::uint64_t values[] = {value_of(arguments)..., 0};
    LibraryCall call(function, values);
    connection.calls.fetch_add(1, std::memory_order_relaxed);
    const auto real = reinterpret_cast<Real>(connection.real.load(std::memory_order_acquire));
    const std::uint64_t result = real(arguments...);
    call.returned(result);
    return result;
}

template <std::size_t version, std::size_t function, class Arguments> struct Thunk;

// Both ABIs pass integers, enumerations and pointers in the same places: a function of 64-bit integers takes and
// passes on all of them. The function is no `noexcept`: an exception of the library passes through.
template <std::size_t version, std::size_t function, std::size_t... argument>
struct Thunk<version, function, std::index_sequence<argument...>> {
    static std::uint64_t call(Passed<function, argument>... arguments) {
        return pass_on(function, connections[version][function], arguments...);
    }
};

template <std::size_t version, std::size_t... function>
std::array<std::uintptr_t, function_count> thunks_of(std::index_sequence<function...>) {
    return {reinterpret_cast<std::uintptr_t>(
        &Thunk<version, function, std::make_index_sequence<functions[function].arguments>>::call)...};
}

template <std::size_t... version>
std::array<std::array<std::uintptr_t, function_count>, versions> thunks_of_versions(std::index_sequence<version...>) {
    return {thunks_of<version>(std::make_index_sequence<function_count>())...};
}

} // namespace

std::uintptr_t thunk(std::size_t function, std::uintptr_t real) {
    using Thunks = decltype(thunks_of_versions(std::make_index_sequence<versions>()));
    static Published<const Thunks> made;
    const Thunks &list = made.get([] { return new Thunks(thunks_of_versions(std::make_index_sequence<versions>())); });
    if (real == 0)
        return 0;
    for (std::size_t version = 0; version < versions; ++version) {
        if (real == list[version][function])
            return 0;
        std::uintptr_t present = 0;
        if (connections[version][function].real.compare_exchange_strong(present, real) || present == real)
            return list[version][function];
    }
    return 0;
}

std::uint64_t calls_of(std::size_t function) {
    std::uint64_t calls = 0;
    for (const auto &version : connections)
        calls += version[function].calls.load(std::memory_order_relaxed);
    return calls;
}

} // namespace tcuda::library_calls
