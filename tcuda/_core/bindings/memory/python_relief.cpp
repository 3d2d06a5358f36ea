#include "bindings/memory/python_relief.hpp"

#include <utility>

namespace nb = nanobind;

namespace tcuda {
namespace {

// A callback may ask for another try without a free, because another process may free memory. A callback that always
// asks for another try must not keep the program for ever.
constexpr int most_fruitless = 100;

} // namespace

bool PythonRelief::relieve(int device, std::size_t size) {
    const nb::gil_scoped_acquire lock;
    DeviceLedger &ledger = ledger_.ledger.of(device);
    const auto allocated = [&] { return ledger.bytes().allocated_bytes.current; };
    const std::int64_t before = allocated();
    if (!ledger_.relieve.is_none() && nb::cast<bool>(ledger_.relieve(device, size))) {
        fruitless_ = allocated() < before ? 0 : fruitless_ + 1;
        return fruitless_ < most_fruitless;
    }
    if (std::exchange(has_collected_, true))
        return false;
    PyGC_Collect(); // the last resort, because the collection of a large program takes longer than most callbacks
    return allocated() < before;
}

} // namespace tcuda
