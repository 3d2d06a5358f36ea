#include "emulation/_cpp/bindings/emulated_activity.hpp"

#include <algorithm>
#include <iterator>

namespace nb = nanobind;

namespace tcuda {

void EmulatedActivity::add(long long start, long long end, long long now) {
    auto next = intervals_.upper_bound(start);
    if (next != intervals_.begin() && std::prev(next)->second >= start) {
        --next;
        start = next->first;
    }
    while (next != intervals_.end() && next->first <= end) {
        end = std::max(end, next->second);
        next = intervals_.erase(next);
    }
    intervals_.emplace_hint(next, start, end);
    for (auto oldest = intervals_.begin(); intervals_.size() > most && oldest->second <= now;) {
        summed_ += oldest->second - oldest->first;
        oldest = intervals_.erase(oldest);
    }
}

long long EmulatedActivity::until(long long now) const { return summed_ + within(0, now); }

long long EmulatedActivity::within(long long start, long long end) const {
    long long found = 0;
    for (const auto &[first, last] : intervals_)
        found += std::max(std::min(last, end) - std::max(first, start), 0LL);
    return found;
}

void bind_emulated_activity(nb::module_ &module) {
    nb::class_<EmulatedActivity>(module, "EmulatedActivity", R"(
    When an emulated device works, in nanoseconds. The caller holds the lock of the clock.)")
        .def(nb::init<>())
        .def("add", &EmulatedActivity::add, nb::arg("start"), nb::arg("end"), nb::arg("now"), R"(
        Add an operation.

        Args:
            start: Its start, which is not before ``now``.
            end: Its end.
            now: The present time.)")
        .def("until", &EmulatedActivity::until, nb::arg("now"),
             "Return how long the device has worked from the beginning to ``now``, the present time.")
        .def("within", &EmulatedActivity::within, nb::arg("start"), nb::arg("end"), R"(
        Return how long the device has worked from ``start`` to ``end``, without operations of long ago.)");
}

} // namespace tcuda
