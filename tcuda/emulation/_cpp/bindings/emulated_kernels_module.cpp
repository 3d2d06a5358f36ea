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

    std::uintptr_t origin() const { return module->range().begin; }
};

class EmulatedLaunch {
public:
    EmulatedLaunch(const EmulatedFunction &function, const Triple &grid, const Triple &block, nb::bytes arguments,
                   unsigned shared, const Ranges &ranges, bool strict, double patience, bool recorded,
                   bool finds_changes, const Ranges &variables, bool races, bool marked, bool strict_marks,
                   const MarkedRanges &marks, bool marks_shared, unsigned order,
                   std::pair<std::uintptr_t, std::uintptr_t> constants, bool cooperative)
        : module_(function.module),
          grid_(*module_,
                launch_of(function, grid, block, arguments, shared, strict, patience, recorded, finds_changes,
                          variables, races, marked, strict_marks, marks, marks_shared, order, constants, cooperative)) {
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

    std::vector<KernelRace> volatile_races() const {
        if (grid_.races() == nullptr)
            return {};
        return grid_.races()->log_of_volatile().races();
    }

    bool communicates() const { return grid_.races() != nullptr && grid_.races()->communicates(); }
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
                            const MarkedRanges &marks, bool marks_shared, unsigned order,
                            std::pair<std::uintptr_t, std::uintptr_t> constants, bool cooperative) {
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
        launch.order = order;
        launch.constants = {constants.first, constants.second};
        launch.cooperative = cooperative;
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
    case Missing::fence_of_first:
    case Missing::fence_of_second:
        return "fence";
    default:
        return "scope";
    }
}

std::string side_without_fence(Missing missing) {
    switch (missing) {
    case Missing::fence:
        return "both";
    case Missing::fence_of_first:
        return "first";
    case Missing::fence_of_second:
        return "second";
    default:
        return "";
    }
}

void bind_races(nb::module_ &module) {
    nb::class_<RacingAccess>(module, "KernelAccess", "One of the two accesses of a :class:`KernelRace`.")
        .def_prop_ro(
            "kind", [](const RacingAccess &access) { return name_of(access.kind); }, R"(
        ``"read"``, ``"write"``, ``"volatile read"``, ``"volatile write"`` or ``"atomic"``.)")
        .def_ro("code", &RacingAccess::code,
                "The place behind the access in the library; 0 if the launch has too many places to tell them apart.")
        .def_ro("size", &RacingAccess::size, "The bytes of the access.")
        .def_prop_ro("thread", [](const RacingAccess &access) { return triple_of(access.thread); })
        .def_prop_ro("block", [](const RacingAccess &access) { return triple_of(access.block); });

    nb::class_<KernelRace>(
        module, "KernelRace",
        "Two accesses of different threads to the same memory that nothing orders, and of which one writes.")
        .def_ro("address", &KernelRace::address, "The first byte that both accesses touch.")
        .def_ro("size", &KernelRace::size, "The bytes that both accesses touch.")
        .def_ro("first", &KernelRace::first)
        .def_ro("second", &KernelRace::second)
        .def_prop_ro(
            "missing", [](const KernelRace &race) { return name_of(race.missing); }, R"(
        What would order the accesses: ``"barrier"``, ``"warp barrier"``, ``"atomic"``, ``"fence"`` or ``"scope"``.

        ``"fence"`` is a fence beside an atomic function, and ``"scope"`` is a function for all threads of the device in
        the place of one for the threads of the block.)")
        .def_prop_ro(
            "without_fence", [](const KernelRace &race) { return side_without_fence(race.missing); }, R"(
        The access whose thread lacks a fence: ``"first"``, ``"second"`` or ``"both"``; empty for other races.)")
        .def_ro("same_value", &KernelRace::same_value,
                "Whether both accesses write, and have always written the same bytes.")
        .def_ro("count", &KernelRace::count, "The races that were seen between the same two places of the code.")
        .def_ro("shared", &KernelRace::shared, "Whether the memory is shared memory.");
}

} // namespace

// Adds the modules and the launches of kernels on the processor to the module.
void bind_emulated_kernels(nb::module_ &module) {
    module.def(
        "regions_of_items", regions_of_items, nb::arg("places"), nb::arg("itemsize"), nb::arg("most"),
        nb::sig("def regions_of_items(places: bytes, itemsize: int, most: int) -> list[tuple[int, int, tuple[int, "
                "...], tuple[int, ...], bool]]"),
        R"(
    Return the regions of items at given addresses.

    Args:
        places: The addresses in ascending order, each in 8 bytes of the order of the machine.
        itemsize: The bytes of an item.
        most: The most exact regions. Beyond this number, the regions are a few ranges with all items in them.

    Returns:
        The address, the bytes of an item, the lengths and the strides of each region, and whether the region has no
        bytes but those of the items.)");

    nb::class_<EmulatedFunction>(module, "EmulatedFunction", "A kernel of a :class:`EmulatedModule`.")
        .def_prop_ro("name", &EmulatedFunction::name)
        .def_prop_ro("parameters", &EmulatedFunction::parameters,
                     nb::sig("def parameters(self) -> list[tuple[str, int, int]]"), R"(
        Return the kind, the size and the offset of each parameter.

        The kinds are those of :class:`KernelParameters`.)")
        .def_prop_ro("argument_bytes", &EmulatedFunction::argument_bytes,
                     "Return the size of the buffer in which the arguments lie at their offsets.")
        .def_prop_ro(
            "module_memory", &EmulatedFunction::module_memory,
            nb::sig("def module_memory(self) -> list[tuple[int, int, bool]]"),
            "Return the beginning and the end of each part of the module that can be read, and whether it is code.");

    nb::class_<EmulatedModule>(module, "EmulatedModule", R"(
    A load, with its own variables, of a shared library that the C++ compiler has made of CUDA C++ source.

    Args:
        library: The bytes of the library.

    Raises:
        RuntimeError: The library cannot be loaded, or was made by another version of tcuda.)")
        .def(nb::init<const nb::bytes &>(), nb::arg("library"))
        .def("function", &EmulatedModule::function, nb::arg("name"),
             nb::sig("def function(self, name: str) -> EmulatedFunction | None"),
             "Return the kernel that the source lists as ``name``, or whose symbol is ``name``.")
        .def("symbol", &EmulatedModule::symbol, nb::arg("name"),
             nb::sig("def symbol(self, name: str) -> tuple[int, int] | None"),
             "Return the address and the size of a global variable.")
        .def_prop_ro("origin", &EmulatedModule::origin, "The address where the library begins.")
        .def_prop_ro("kernels", &EmulatedModule::kernels,
                     "Return the names of the kernels, in the order of the source.");

    bind_races(module);

    nb::class_<EmulatedLaunch>(module, "EmulatedLaunch", R"(
    A launch of a kernel on the processor.

    Args:
        function: The kernel.
        grid: The number of blocks along each axis.
        block: The number of threads of a block along each axis, at most 1,024 in all.
        arguments: The arguments, packed.
        shared: The bytes of dynamic shared memory of a block, at most 232,448.
        ranges: The beginning and the end of each piece of memory that the kernel may use.
        strict: Whether all threads of a block must reach its barriers. A GPU does not count threads that have returned.
        patience: The seconds for which threads may spin while no thread of the block returns or leaves a barrier.
        recorded: Whether the launch notes the memory of devices that the kernel reads and writes.
        finds_changes: Whether a byte that was read, and that has another value at the end, counts as written. Without
            ``-fsanitize=thread``, gcc tells nothing about a write after a read of the same memory.
        variables: The beginning and the end of each global variable of the module, which is memory of a device. All
            other variables of the module are shared memory.
        races: Whether the launch looks for races between its threads. The module must be built with ``races``.
        marked: Whether the launch looks for reads of bytes that nothing has written.
        strict_marks: Whether no object of the module has bytes that nobody writes, such as padding. Then a read of a
            number with one unwritten byte counts. Otherwise all bytes of the read must be unwritten.
        marks: The beginning and the end of each block with bytes that nothing has written, and the address of its
            marks: a byte for each, which is 255 if the byte of the block is written. The address 0 stands for shared
            memory, which has no contents when a block of threads begins.
        marks_shared: Whether the dynamic shared memory has marks, too.
        order: The order of the blocks, and of the threads of each block of a module that is built with ``races``: 0 is
            the usual order, 1 the reverse, and other numbers are seeds. Only in the usual order, the kernel prints.
        constants: The beginning and the end of whole pages of memory that the kernel can only read.
        cooperative: Whether the blocks may wait for each other at a barrier of the whole grid.

    Raises:
        ValueError: ``block``, ``grid`` or ``shared`` is beyond the limits above, or ``arguments`` has another size than
            the parameters of the kernel.)")
        .def(nb::init<const EmulatedFunction &, const Triple &, const Triple &, nb::bytes, unsigned, const Ranges &,
                      bool, double, bool, bool, const Ranges &, bool, bool, bool, const MarkedRanges &, bool, unsigned,
                      std::pair<std::uintptr_t, std::uintptr_t>, bool>(),
             nb::arg("function"), nb::arg("grid"), nb::arg("block"), nb::arg("arguments"), nb::arg("shared"),
             nb::arg("ranges"), nb::arg("strict") = true, nb::arg("patience") = 30.0, nb::arg("recorded") = false,
             nb::arg("finds_changes") = false, nb::arg("variables") = Ranges(), nb::arg("races") = false,
             nb::arg("marked") = false, nb::arg("strict_marks") = false, nb::arg("marks") = MarkedRanges(),
             nb::arg("marks_shared") = false, nb::arg("order") = 0,
             nb::arg("constants") = std::pair<std::uintptr_t, std::uintptr_t>(0, 0), nb::arg("cooperative") = false,
             nb::sig(
                 "def __init__(self, function: EmulatedFunction, grid: tuple[int, int, int], block: tuple[int, int, "
                 "int], arguments: bytes, shared: int, ranges: Sequence[tuple[int, int]], strict: bool=True, patience: "
                 "float=30.0, recorded: bool=False, finds_changes: bool=False, variables: Sequence[tuple[int, "
                 "int]]=(), races: bool=False, marked: bool=False, strict_marks: bool=False, marks: "
                 "Sequence[tuple[int, int, int]]=(), marks_shared: bool=False, order: int=0, constants: tuple[int, "
                 "int]=(0, 0), cooperative: bool=False) -> None"))
        .def("allow", &EmulatedLaunch::allow, nb::arg("begin"), nb::arg("end"), R"(
        Let the kernel use the memory from ``begin`` to ``end``.

        Raises:
            RuntimeError: Another thread is in :meth:`run`.)")
        .def("mark", &EmulatedLaunch::mark, nb::arg("begin"), nb::arg("end"), nb::arg("marks"), R"(
        Let the launch know of a block with unwritten bytes, before the block is allowed.

        Args:
            begin: The beginning of the block.
            end: The end of the block.
            marks: The address of the marks.)")
        .def("run", &EmulatedLaunch::run, nb::sig("def run(self) -> tuple[Any, ...] | None"), R"(
        Run the kernel; Python's lock is given back meanwhile.

        Returns:
            None when the kernel has ended. After the kernel has ended or failed, later calls return the same again.

            ``("access", address, size, write, thread, block)`` if a thread wants to use memory outside of the ranges.
            The next call goes on with this access. Call :meth:`allow` before, or the access is reported again.

            ``(kind, text, file, line, function, thread, block)`` if a thread has failed. The kinds are ``"assert"``,
            ``"bounds"``, ``"deadlock"``, ``"divide"``, ``"mask"``, ``"misaligned"``, ``"timeout"`` and ``"trap"``. A
            launch in another ``order`` has the kind ``"unfinished"`` if the launch takes too long, or if a block spins
            while others have not begun.

        Raises:
            RuntimeError: The thread runs another kernel of the same module, or another thread is in :meth:`run`.)")
        .def_prop_ro("codes", &EmulatedLaunch::codes, R"(
        The places of the code of the result of :meth:`run`: an access, a failure, or all waiting threads.

        A place is behind a call; 0 if the place is not known.)")
        .def_prop_ro("recorded", &EmulatedLaunch::recorded, R"(
        The beginning and the end of each piece of memory of devices that the launch may use, in ascending order.)")
        .def("accesses", &EmulatedLaunch::accesses, nb::arg("cuts"), nb::arg("most"),
             nb::sig("def accesses(self, cuts: Sequence[int], most: int) -> list[tuple[int, int, tuple[int, ...], "
                     "tuple[int, ...], int, bool]]"),
             R"(
        Return the memory that the kernel has read and written, once :meth:`run` has returned None.

        Args:
            cuts: Addresses in ascending order. No region goes beyond two neighbouring addresses.
            most: The most exact regions between two neighbouring addresses.

        Returns:
            The address, the bytes of an item, the lengths and the strides of each region; 1 for reads, 2 for writes and
            3 for both; whether the kernel has used all bytes of the region.)")
        .def("races", &EmulatedLaunch::races, R"(
        Return the races that the launch has found, the first of each pair of places of the code, at most 256.

        Raises:
            MemoryError: The machine had too little memory for the search.)")
        .def("volatile_races", &EmulatedLaunch::volatile_races, R"(
        Return the races of volatile accesses with others that are volatile or atomic, likewise.

        They are no races where a thread polls the memory in a loop.)")
        .def_prop_ro(
            "communicates", &EmulatedLaunch::communicates,
            "Whether threads may have told each other how far they are, so that another order may show more races.")
        .def_prop_ro("races_left_out", &EmulatedLaunch::races_left_out,
                     "The pairs of places of the code with races that :meth:`races` leaves out.")
        .def("keep_marks", &EmulatedLaunch::keep_marks, R"(
        Set the marks of the bytes that the launch has written.

        Returns:
            The beginning of each block with such bytes, and their number.)")
        .def_prop_ro(
            "unwritten_reads", &EmulatedLaunch::unwritten_reads,
            nb::sig(
                "def unwritten_reads(self) -> list[tuple[int, int, int, tuple[int, int, int], tuple[int, int, int], "
                "int]]"),
            R"(
        The reads of bytes that nothing has written, for each of the first 64 places of the code that read so.

        An item has the address and the size of the first read, the number of reads, and the thread, the block and the
        place of the first read, as :attr:`codes` has places.)")
        .def_prop_ro("unreached", &EmulatedLaunch::unreached, nb::sig("def unreached(self) -> tuple[int, int] | None"),
                     R"(
        Return how many threads of a block waited at a barrier, and how many threads had returned before.

        None if all threads of each block reached the barriers, or if the launch is strict.)");
}

} // namespace tcuda
