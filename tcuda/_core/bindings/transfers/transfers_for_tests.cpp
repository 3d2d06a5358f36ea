// The tables of the kernels that pack arrays, for tests.
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <tuple>
#include <vector>

#include "bindings/python/containers.hpp"
#include "transfers/pack_tables.hpp"

namespace nb = nanobind;

namespace tcuda {
namespace {

using PythonPackedArray = std::tuple<std::uint64_t, std::uint64_t, std::uint64_t>;

template <std::size_t capacity>
nb::list tables_of(std::uint64_t target, const std::vector<PackedArray> &arrays) {
    nb::list found = new_list();
    const auto table = std::make_unique<PackTable<capacity>>();
    each_table(*table, target, arrays, [&](const PackTable<capacity> &filled) {
        found.append(nb::make_tuple(nb::bytes(&filled, sizeof filled), filled.blocks, pack_threads));
        return success;
    });
    return found;
}

nb::list pack_tables(std::uint64_t target, const std::vector<PythonPackedArray> &given, bool large) {
    std::vector<PackedArray> arrays;
    for (const auto &[source, bytes, offset] : given)
        arrays.push_back({source, bytes, offset});
    return large ? tables_of<large_capacity>(target, arrays) : tables_of<small_capacity>(target, arrays);
}

} // namespace

void bind_transfers_for_tests(nb::module_ &module) {
    module.def("pack_tables", pack_tables, nb::arg("target"), nb::arg("arrays"), nb::arg("large"),
               R"(
    Return the launches of the kernel that packs arrays: the table, the number of blocks, and the threads of a block.

    Args:
        target: The address of the flat array.
        arrays: The address, the bytes and the place in the flat array of each array.
        large: Whether the tables are large.)");
}

} // namespace tcuda
