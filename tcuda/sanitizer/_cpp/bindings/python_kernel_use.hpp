// What a kernel does with memory, as Python writes it.
#pragma once

#include <nanobind/nanobind.h>

#include <cstddef>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "sanitizer/_cpp/kernel_uses/kernel_use.hpp"

namespace tcuda {

using KernelParameterTuples = std::vector<std::pair<std::size_t, std::size_t>>; // offset, size
using KernelPointerTuples =
    std::vector<std::tuple<std::size_t, int, bool, int, std::size_t, std::string>>; // as in KernelUse

// Throws nanobind::value_error if a kind is none of the four.
kernel_uses::KernelUse use_of(const KernelParameterTuples &parameters, const KernelPointerTuples &pointers,
                              bool complete);

// A str. The bytes of a text need not be UTF-8.
nanobind::object decoded(const std::string &text);

// (parameters, pointers, complete); a pointer is (offset, kind, possible, label).
nanobind::tuple tuple_of(const kernel_uses::KernelUse &use);

} // namespace tcuda
