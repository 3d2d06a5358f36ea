#include "bindings/kernel_uses_module.hpp"

#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <chrono>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "bindings/containers.hpp"
#include "kernel_uses/cubin_uses.hpp"
#include "kernel_uses/mangled_name.hpp"
#include "kernel_uses/ptx_uses.hpp"
#include "kernel_uses/sass_uses.hpp"
#include "kernel_uses/watched_cubins.hpp"

namespace nb = nanobind;

namespace tcuda {
namespace {

using kernel_uses::KernelUse;
using kernel_uses::KernelUses;

constexpr const char *kinds[] = {"none", "read", "write", "both"};

// The bytes of a text need not be UTF-8.
nb::object decoded(const std::string &text) {
    return nb::bytes(text.data(), text.size()).attr("decode")("utf-8", "replace");
}

nb::tuple tuple_of(const KernelUse &use) {
    nb::list parameters = new_list(), pointers = new_list();
    for (const auto &parameter : use.parameters)
        parameters.append(nb::make_tuple(parameter.offset, parameter.size));
    for (const auto &pointer : use.pointers)
        pointers.append(nb::make_tuple(pointer.offset, kinds[int(pointer.kind)], pointer.possible,
                                       decoded(pointer.label)));
    return nb::make_tuple(parameters, pointers, use.complete);
}

nb::dict dict_of(const KernelUses &uses) {
    nb::dict found = new_dict();
    for (const auto &[name, use] : uses)
        found[decoded(name)] = tuple_of(use);
    return found;
}

nb::dict uses_of_cubin(nb::bytes data, const std::optional<std::string> &kernel,
                       const std::optional<std::string> &disassembler, double seconds) {
    const auto limit = std::chrono::milliseconds(std::int64_t(seconds * 1000));
    KernelUses uses;
    {
        // The bytes are the caller's for the time of the call.
        const auto bytes = reinterpret_cast<const std::byte *>(data.c_str());
        const std::size_t size = data.size();
        const nb::gil_scoped_release released;
        const char *name = kernel ? kernel->c_str() : nullptr;
        if (disassembler)
            uses = kernel_uses::uses_of_cubin(bytes, size, name, kernel_uses::Disassembler(*disassembler), limit);
        else
            uses = kernel_uses::uses_of_cubin(bytes, size, name, kernel_uses::Disassembler::usual(), limit);
    }
    return dict_of(uses);
}

nb::dict uses_of_watched_cubin(nb::bytes data, const std::optional<std::string> &kernel) {
    KernelUses uses;
    {
        const std::string_view cubin(data.c_str(), data.size());
        const nb::gil_scoped_release released;
        uses = kernel_uses::uses_of_watched_cubin(cubin, kernel ? kernel->c_str() : nullptr);
    }
    return dict_of(uses);
}

double watched_cubins_seconds() {
    return std::chrono::duration<double>(kernel_uses::watched_cubins_time().left()).count();
}

void set_watched_cubins_seconds(double seconds) {
    kernel_uses::watched_cubins_time().set(kernel_uses::TimeBudget::Time(std::int64_t(seconds * 1e6)));
}

using Blocks =
    std::map<std::string, std::pair<std::vector<std::pair<std::size_t, std::size_t>>, std::vector<std::size_t>>>;

nb::dict uses_of_sass(nb::bytes listing, const Blocks &blocks) {
    kernel_uses::SassFacts facts;
    for (const auto &[name, block] : blocks) {
        auto &target = facts.blocks[name];
        for (const auto &[offset, size] : block.first)
            target.parameters.push_back({offset, size});
        target.pointers = block.second;
    }
    return dict_of(kernel_uses::uses_of_sass(std::string_view(listing.c_str(), listing.size()), facts));
}

nb::dict uses_of_ptx(nb::bytes text) {
    return dict_of(kernel_uses::uses_of_ptx(std::string_view(text.c_str(), text.size())));
}

nb::tuple uses_of_mangled_name(const std::string &name, const std::vector<std::pair<std::size_t, std::size_t>> &given) {
    std::vector<kernel_uses::Parameter> parameters;
    for (const auto &[offset, size] : given)
        parameters.push_back({offset, size});
    return tuple_of(kernel_uses::uses_of_mangled_name(name, parameters));
}

std::string find_disassembler() { return kernel_uses::Disassembler().path(); }

} // namespace

void bind_kernel_uses(nb::module_ &module) {
    module.def("uses_of_cubin", &uses_of_cubin, nb::arg("data"), nb::arg("kernel") = nb::none(),
               nb::arg("disassembler") = nb::none(), nb::arg("seconds") = 5.0);
    module.def("uses_of_sass", &uses_of_sass, nb::arg("listing"), nb::arg("blocks") = Blocks());
    module.def("uses_of_ptx", &uses_of_ptx, nb::arg("text"));
    module.def("uses_of_mangled_name", &uses_of_mangled_name, nb::arg("name"), nb::arg("parameters"));
    module.def("find_disassembler", &find_disassembler);
    module.def("prefer_disassembler", &kernel_uses::Disassembler::prefer, nb::arg("path"));
    module.def("uses_of_watched_cubin", &uses_of_watched_cubin, nb::arg("data"), nb::arg("kernel") = nb::none());
    module.def("watched_cubins_seconds", &watched_cubins_seconds);
    module.def("set_watched_cubins_seconds", &set_watched_cubins_seconds, nb::arg("seconds"));
}

} // namespace tcuda
