#include "library_calls/thunks.hpp"

#include <array>
#include <atomic>
#include <type_traits>
#include <utility>

#include "library_calls/library_call.hpp"
#include "library_calls/table.hpp"

namespace tcuda::library_calls {
namespace {

struct Connection {
    std::atomic<std::uintptr_t> real{0};
    std::atomic<std::uint64_t> calls{0};
};
std::array<Connection, function_count> connections;

template <std::size_t function, std::size_t argument>
using Passed = std::conditional_t<(functions[function].floats >> argument & 1) != 0, float,
                                  std::conditional_t<(functions[function].doubles >> argument & 1) != 0, double,
                                                     std::uint64_t>>;

std::uint64_t value_of(std::uint64_t argument) { return argument; }
std::uint64_t value_of(double) { return 0; } // no role needs the number

template <std::size_t function, class Arguments> struct Thunk;

// Both ABIs pass integers, enumerations and pointers in the same places: a function of 64-bit integers takes and
// passes on all of them. The function is no `noexcept`: an exception of the library passes through.
template <std::size_t function, std::size_t... argument>
struct Thunk<function, std::index_sequence<argument...>> {
    static std::uint64_t call(Passed<function, argument>... arguments) {
        using Real = std::uint64_t (*)(Passed<function, argument>...);
        Connection &connection = connections[function];
        const std::uint64_t values[] = {value_of(arguments)..., 0};
        LibraryCall call(function, values);
        connection.calls.fetch_add(1, std::memory_order_relaxed);
        const auto real = reinterpret_cast<Real>(connection.real.load(std::memory_order_acquire));
        const std::uint64_t result = real(arguments...);
        call.returned(result);
        return result;
    }
};

template <std::size_t... function>
std::array<std::uintptr_t, function_count> thunks_of(std::index_sequence<function...>) {
    return {reinterpret_cast<std::uintptr_t>(
        &Thunk<function, std::make_index_sequence<functions[function].arguments>>::call)...};
}

} // namespace

std::uintptr_t thunk(std::size_t function) {
    static const std::array<std::uintptr_t, function_count> list =
        thunks_of(std::make_index_sequence<function_count>());
    return list[function];
}

bool connect(std::size_t function, std::uintptr_t real) {
    if (real == 0 || real == thunk(function))
        return false;
    std::uintptr_t expected = 0;
    return connections[function].real.compare_exchange_strong(expected, real) || expected == real;
}

std::uint64_t calls_of(std::size_t function) { return connections[function].calls.load(std::memory_order_relaxed); }

} // namespace tcuda::library_calls
