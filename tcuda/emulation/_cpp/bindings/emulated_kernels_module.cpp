#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <chrono>
#include <cstring>
#include <memory>
#include <new>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "bindings/python/containers.hpp"
#include "emulation/_cpp/kernels/grid.hpp"
#include "emulation/_cpp/kernels/loaded_module.hpp"

namespace nb = nanobind;

namespace tcuda {
namespace {

using Triple = std::tuple<unsigned, unsigned, unsigned>;
using Ranges = std::vector<std::pair<std::uintptr_t, std::uintptr_t>>;
using MarkedRanges = std::vector<std::tuple<std::uintptr_t, std::uintptr_t, std::uintptr_t>>; // with their marks

abi::Index index_of(const Triple &triple) { return {std::get<0>(triple), std::get<1>(triple), std::get<2>(triple)}; }

Triple triple_of(abi::Index index) { return {index.x, index.y, index.z}; }

// The bytes of an item of a region.
std::uint64_t item_of(const Region &region) { return region.axes == 0 ? 1 : region.run; }

// The lengths and the strides of a region.
std::pair<nb::tuple, nb::tuple> layout_of(const Region &region) {
    if (region.axes == 0)
        return {nb::make_tuple(region.run), nb::make_tuple(1)};
    nb::list lengths = new_list(), strides = new_list();
    for (unsigned axis = region.axes; axis-- != 0;) {
        lengths.append(region.lengths[axis]);
        strides.append(region.strides[axis]);
    }
    return {nb::tuple(lengths), nb::tuple(strides)};
}

nb::list regions_of_items(const nb::bytes &places, std::uint64_t itemsize, std::size_t most) {
    const auto *const begin = static_cast<const char *>(places.data());
    RegionBuilder builder(most);
    std::uintptr_t start = 0, end = 0; // the run that may still grow
    for (std::size_t place = 0; place + sizeof(std::uint64_t) <= places.size(); place += sizeof(std::uint64_t)) {
        std::uint64_t address;
        std::memcpy(&address, begin + place, sizeof address);
        if (address > end || end == 0) {
            if (end != 0)
                builder.add(start, end);
            start = static_cast<std::uintptr_t>(address);
        }
        end = static_cast<std::uintptr_t>(address + itemsize);
    }
    if (end != 0)
        builder.add(start, end);
    nb::list found = new_list();
    for (const Region &region : builder.take()) {
        const auto [lengths, strides] = layout_of(region);
        found.append(nb::make_tuple(region.address, item_of(region), lengths, strides, builder.exact()));
    }
    return found;
}

// A kernel, which keeps its module.
struct EmulatedFunction {
    std::shared_ptr<LoadedModule> module;
    const abi::Kernel *kernel;

    std::string name() const { return kernel->name; }

    nb::list parameters() const {
        nb::list found = new_list();
        for (unsigned place = 0; place < kernel->parameter_count; ++place) {
            const abi::Parameter &parameter = kernel->parameters[place];
            found.append(nb::make_tuple(std::string(1, parameter.kind), parameter.size, parameter.offset));
        }
        return found;
    }

    unsigned argument_bytes() const { return kernel->argument_bytes; }

    nb::list module_memory() const {
        nb::list found = new_list();
        for (const auto &[range, code] : module->segments())
            found.append(nb::make_tuple(range.begin, range.end, code));
        return found;
    }
};

struct EmulatedModule {
    std::shared_ptr<LoadedModule> module;

    explicit EmulatedModule(const nb::bytes &library) {
        const std::string_view content(library.c_str(), library.size());
        const nb::gil_scoped_release released;
        module = std::make_shared<LoadedModule>(content);
    }

    nb::object function(const std::string &name) const {
        const abi::Kernel *kernel = module->kernel(name);
        return kernel == nullptr ? nb::none() : nb::cast(EmulatedFunction{module, kernel});
    }

    nb::object symbol(const std::string &name) const {
        const auto found = module->variable(name);
        return found ? nb::object(nb::make_tuple(found->address, found->size)) : nb::none();
    }

    std::vector<std::string> kernels() const { return module->kernel_names(); }
};

class EmulatedLaunch {
public:
    EmulatedLaunch(const EmulatedFunction &function, const Triple &grid, const Triple &block, nb::bytes arguments,
                   unsigned shared, const Ranges &ranges, bool strict, double patience, bool recorded,
                   bool finds_changes, const Ranges &variables, bool races, bool marked, bool strict_marks,
                   const MarkedRanges &marks, bool marks_shared)
        : module_(function.module),
          grid_(*module_, launch_of(function, grid, block, arguments, shared, strict, patience, recorded, finds_changes,
                                    variables, races, marked, strict_marks, marks, marks_shared)) {
        for (const auto &[begin, end] : ranges)
            allow(begin, end);
    }

    void allow(std::uintptr_t begin, std::uintptr_t end) { grid_.allow({begin, end}); }

    void mark(std::uintptr_t begin, std::uintptr_t end, std::uintptr_t marks) {
        grid_.mark({{begin, end}, reinterpret_cast<unsigned char *>(marks)});
    }

    nb::object unreached() const {
        const Grid::Unreached found = grid_.unreached();
        return found.waiting == 0 ? nb::none() : nb::object(nb::make_tuple(found.waiting, found.returned));
    }

    Ranges recorded() const {
        Ranges found;
        for (const abi::Range &range : grid_.recorded())
            found.emplace_back(range.begin, range.end);
        return found;
    }

    nb::list accesses(const std::vector<std::uintptr_t> &cuts, std::size_t most) const {
        nb::list found = new_list();
        if (grid_.recorder() == nullptr)
            return found;
        std::vector<RecordedRegion> regions;
        {
            const nb::gil_scoped_release released;
            regions = grid_.recorder()->regions(cuts, most);
        }
        for (const auto &[region, kind, exact] : regions) {
            const auto [lengths, strides] = layout_of(region);
            found.append(
                nb::make_tuple(region.address, item_of(region), lengths, strides, static_cast<unsigned>(kind), exact));
        }
        return found;
    }

    std::vector<KernelRace> races() const {
        if (grid_.races() == nullptr)
            return {};
        if (grid_.races()->failed())
            throw std::bad_alloc();
        return grid_.races()->log().races();
    }

    std::size_t races_left_out() const { return grid_.races() == nullptr ? 0 : grid_.races()->log().left_out(); }
    std::vector<std::pair<std::uintptr_t, std::uint64_t>> keep_marks() {
        if (grid_.recorder() == nullptr)
            return {};
        return grid_.recorder()->keep_marks();
    }

    nb::list unwritten_reads() const {
        nb::list found = new_list();
        for (const UnwrittenReads &each : grid_.unwritten_reads())
            found.append(nb::make_tuple(each.address, each.size, each.count, triple_of(each.thread),
                                        triple_of(each.block), each.code));
        return found;
    }

    std::vector<std::uintptr_t> codes() const { return codes_; }

    nb::object run() {
        codes_.clear();
        Grid::Outcome outcome;
        do {
            const nb::gil_scoped_release released;
            outcome = grid_.run();
        } while (outcome == Grid::Outcome::interrupted && passes_signals());
        const Triple thread = triple_of(grid_.thread()), block = triple_of(grid_.block());
        switch (outcome) {
        case Grid::Outcome::done:
            return nb::none();
        case Grid::Outcome::access: {
            const Access &access = grid_.access();
            codes_ = {access.code};
            return nb::make_tuple("access", access.address, access.size, access.write, thread, block);
        }
        default: {
            const Fault &fault = grid_.fault();
            codes_ = fault.codes;
            return nb::make_tuple(fault.kind, fault.text, fault.file, fault.line, fault.function, thread, block);
        }
        }
    }

private:
    // Lets the handlers of signals run, so that Ctrl-C ends a kernel. True, or throws the exception of a handler.
    static bool passes_signals() {
        if (PyErr_CheckSignals() != 0)
            throw nb::python_error();
        return true;
    }

    static Launch launch_of(const EmulatedFunction &function, const Triple &grid, const Triple &block,
                            const nb::bytes &arguments, unsigned shared, bool strict, double patience, bool recorded,
                            bool finds_changes, const Ranges &variables, bool races, bool marked, bool strict_marks,
                            const MarkedRanges &marks, bool marks_shared) {
        if (arguments.size() != function.kernel->argument_bytes)
            throw nb::value_error("the packed arguments have another size than the parameters of the kernel");
        Launch launch{function.kernel,
                      index_of(grid),
                      index_of(block),
                      std::string(arguments.c_str(), arguments.size()),
                      shared,
                      strict,
                      std::chrono::nanoseconds(static_cast<long long>(patience * 1e9)),
                      recorded,
                      finds_changes};
        for (const auto &[begin, end] : variables)
            launch.variables.push_back({begin, end});
        launch.races = races;
        launch.marked = marked;
        launch.strict_marks = strict_marks;
        for (const auto &[begin, end, bytes] : marks)
            launch.marks.push_back({{begin, end}, reinterpret_cast<unsigned char *>(bytes)});
        launch.marks_shared = marks_shared;
        return launch;
    }

    const std::shared_ptr<LoadedModule> module_;
    Grid grid_;
    std::vector<std::uintptr_t> codes_; // of the access or the failure that run() has returned
};

std::string name_of(AccessKind kind) {
    switch (kind) {
    case AccessKind::read:
        return "read";
    case AccessKind::write:
        return "write";
    case AccessKind::volatile_read:
        return "volatile read";
    case AccessKind::volatile_write:
    case AccessKind::volatile_release:
        return "volatile write";
    default:
        return "atomic";
    }
}

std::string name_of(Missing missing) {
    switch (missing) {
    case Missing::warp_barrier:
        return "warp barrier";
    case Missing::barrier:
        return "barrier";
    case Missing::atomic:
        return "atomic";
    case Missing::fence:
        return "fence";
    default:
        return "scope";
    }
}

void bind_races(nb::module_ &module) {
    nb::class_<RacingAccess>(module, "KernelAccess")
        .def_prop_ro("kind", [](const RacingAccess &access) { return name_of(access.kind); })
        .def_ro("code", &RacingAccess::code)
        .def_ro("size", &RacingAccess::size)
        .def_prop_ro("thread", [](const RacingAccess &access) { return triple_of(access.thread); })
        .def_prop_ro("block", [](const RacingAccess &access) { return triple_of(access.block); });

    nb::class_<KernelRace>(module, "KernelRace")
        .def_ro("address", &KernelRace::address)
        .def_ro("size", &KernelRace::size)
        .def_ro("first", &KernelRace::first)
        .def_ro("second", &KernelRace::second)
        .def_prop_ro("missing", [](const KernelRace &race) { return name_of(race.missing); })
        .def_ro("same_value", &KernelRace::same_value)
        .def_ro("count", &KernelRace::count)
        .def_ro("shared", &KernelRace::shared);
}

} // namespace

// Adds the modules and the launches of kernels on the processor to the module.
void bind_emulated_kernels(nb::module_ &module) {
    module.def("regions_of_items", regions_of_items, nb::arg("places"), nb::arg("itemsize"), nb::arg("most"));

    nb::class_<EmulatedFunction>(module, "EmulatedFunction")
        .def_prop_ro("name", &EmulatedFunction::name)
        .def_prop_ro("parameters", &EmulatedFunction::parameters)
        .def_prop_ro("argument_bytes", &EmulatedFunction::argument_bytes)
        .def_prop_ro("module_memory", &EmulatedFunction::module_memory);

    nb::class_<EmulatedModule>(module, "EmulatedModule")
        .def(nb::init<const nb::bytes &>(), nb::arg("library"))
        .def("function", &EmulatedModule::function, nb::arg("name"))
        .def("symbol", &EmulatedModule::symbol, nb::arg("name"))
        .def_prop_ro("kernels", &EmulatedModule::kernels);

    bind_races(module);

    nb::class_<EmulatedLaunch>(module, "EmulatedLaunch")
        .def(nb::init<const EmulatedFunction &, const Triple &, const Triple &, nb::bytes, unsigned, const Ranges &,
                      bool, double, bool, bool, const Ranges &, bool, bool, bool, const MarkedRanges &, bool>(),
             nb::arg("function"), nb::arg("grid"), nb::arg("block"), nb::arg("arguments"), nb::arg("shared"),
             nb::arg("ranges"), nb::arg("strict") = true, nb::arg("patience") = 30.0, nb::arg("recorded") = false,
             nb::arg("finds_changes") = false, nb::arg("variables") = Ranges(), nb::arg("races") = false,
             nb::arg("marked") = false, nb::arg("strict_marks") = false, nb::arg("marks") = MarkedRanges(),
             nb::arg("marks_shared") = false)
        .def("allow", &EmulatedLaunch::allow, nb::arg("begin"), nb::arg("end"))
        .def("mark", &EmulatedLaunch::mark, nb::arg("begin"), nb::arg("end"), nb::arg("marks"))
        .def("run", &EmulatedLaunch::run)
        .def_prop_ro("codes", &EmulatedLaunch::codes)
        .def_prop_ro("recorded", &EmulatedLaunch::recorded)
        .def("accesses", &EmulatedLaunch::accesses, nb::arg("cuts"), nb::arg("most"))
        .def("races", &EmulatedLaunch::races)
        .def_prop_ro("races_left_out", &EmulatedLaunch::races_left_out)
        .def("keep_marks", &EmulatedLaunch::keep_marks)
        .def_prop_ro("unwritten_reads", &EmulatedLaunch::unwritten_reads)
        .def_prop_ro("unreached", &EmulatedLaunch::unreached);
}

} // namespace tcuda
