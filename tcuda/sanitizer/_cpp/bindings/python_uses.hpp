// The accesses of an operation that Python describes, and the name of the operation.
#pragma once

#include <nanobind/nanobind.h>

#include <cstddef>
#include <string_view>
#include <utility>
#include <vector>

#include "sanitizer/_cpp/bindings/use_reader.hpp"
#include "sanitizer/_cpp/order/race_detector.hpp"

namespace tcuda {

inline nanobind::object tuple_of(nanobind::handle sequence) {
    nanobind::object tuple = nanobind::steal(PySequence_Tuple(sequence.ptr()));
    if (!tuple.is_valid())
        nanobind::raise_python_error();
    return tuple;
}

// The accesses of an operation, which Python passes as a sequence of tuples. Each thread keeps one vector of accesses,
// for its memory. Python code that runs during the reading may come back here; that call then has another vector.
class Uses {
public:
    explicit Uses(nanobind::handle sequence) : tuple_(tuple_of(sequence)) {
        std::swap(uses_, spare());
        if (!read_uses(tuple_.ptr(), &uses_, &count_))
            nanobind::raise_python_error();
    }
    ~Uses() { std::swap(uses_, spare()); }
    Uses(const Uses &) = delete;
    Uses &operator=(const Uses &) = delete;

    races::RaceDetector::NamedUses get() { return {uses_.data(), count_}; }

private:
    static std::vector<races::RaceDetector::NamedUse> &spare() {
        static thread_local std::vector<races::RaceDetector::NamedUse> spare;
        return spare;
    }

    nanobind::object tuple_; // keeps the labels alive
    std::vector<races::RaceDetector::NamedUse> uses_;
    std::size_t count_ = 0;
};

// The text lives as long as the str.
inline std::string_view name_of(nanobind::handle text) {
    std::string_view read;
    if (!read_text(text.ptr(), "a name", &read))
        nanobind::raise_python_error();
    return read;
}

} // namespace tcuda
