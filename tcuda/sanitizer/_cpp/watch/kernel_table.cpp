#include "sanitizer/_cpp/watch/kernel_table.hpp"

#include <algorithm>
#include <utility>

#include "driver/status.hpp"
#include "sanitizer/_cpp/kernel_uses/mangled_name.hpp"
#include "sanitizer/_cpp/kernel_uses/program.hpp"
#include "sanitizer/_cpp/kernel_uses/ptx_uses.hpp"
#include "sanitizer/_cpp/watch/relaxed_questions.hpp"
#include "sanitizer/_cpp/watch/version.hpp"
#include "threads/published.hpp"

namespace tcuda::watch {
namespace {

using kernel_uses::KernelUse;
using kernel_uses::Parameter;

constexpr std::size_t most_parameters = 1 << 13; // more than any kernel has

struct Layout {
    std::vector<Parameter> parameters;
    bool known = false;
};

// The driver knows the parameters of every kernel. Other knowledge counts only where the driver cannot be asked.
Layout layout_of(libcuda::Function function, const KernelUse &use, const KernelQuestions &questions) {
    Layout layout;
    if (questions.parameter_info == nullptr) {
        layout.parameters = use.parameters;
        layout.known = !use.parameters.empty();
        return layout;
    }
    Parameter parameter{};
    while (layout.parameters.size() < most_parameters &&
           questions.parameter_info(function, layout.parameters.size(), &parameter.offset, &parameter.size) == success)
        layout.parameters.push_back(parameter);
    layout.known = true;
    return layout;
}

// False if a known layout has no parameter with `size` bytes at `offset`.
bool place_in(const Layout &layout, std::size_t offset, std::size_t size, ParameterBytes *place) {
    *place = {offset, ParameterBytes::unknown, 0};
    if (!layout.known)
        return true;
    for (std::size_t number = 0; number < layout.parameters.size(); ++number) {
        const Parameter &parameter = layout.parameters[number];
        if (offset < parameter.offset || offset - parameter.offset >= parameter.size)
            continue;
        place->parameter = number;
        place->inside = offset - parameter.offset;
        return size <= parameter.size - place->inside;
    }
    return false;
}

std::size_t size_of(const KnownKernel::Pointer &pointer) {
    return pointer.dimensions < 0 ? word : 2 * word * (1 + static_cast<std::size_t>(pointer.dimensions));
}

void add_pointers(const KernelUse &use, const Layout &layout, KnownKernel *kernel) {
    for (const kernel_uses::PointerUse &pointer : use.pointers) {
        KnownKernel::Pointer made{{},           pointer.kind, pointer.possible, pointer.dimensions, pointer.itemsize,
                                  pointer.label};
        if (made.dimensions >= 0 && !place_in(layout, pointer.offset, size_of(made), &made.place))
            made.dimensions = -1; // the description does not fit the kernel
        if (place_in(layout, pointer.offset, word, &made.place))
            kernel->pointers.push_back(std::move(made));
        else
            kernel->complete = false;
    }
}

// Pointers are aligned to their size, in structures too.
void add_others(const Layout &layout, KnownKernel *kernel) {
    for (std::size_t number = 0; number < layout.parameters.size(); ++number) {
        const Parameter &parameter = layout.parameters[number];
        for (std::size_t inside = (word - parameter.offset % word) % word; inside + word <= parameter.size;
             inside += word) {
            const std::size_t offset = parameter.offset + inside;
            const auto covers = [offset](const KnownKernel::Pointer &pointer) {
                return offset + word > pointer.place.offset && offset < pointer.place.offset + size_of(pointer);
            };
            if (std::none_of(kernel->pointers.begin(), kernel->pointers.end(), covers))
                kernel->others.push_back({offset, number, inside});
        }
    }
}

// Whether the code of the kernel tells more than the description.
bool is_doubtful(const KernelUse &use) {
    return std::any_of(use.pointers.begin(), use.pointers.end(),
                       [](const kernel_uses::PointerUse &pointer) { return pointer.possible; });
}

// Whether the program has the parameters of the kernel.
bool fits(const kernel_uses::Program &program, const Layout &layout) {
    return layout.known && std::equal(program.parameters.begin(), program.parameters.end(), layout.parameters.begin(),
                                      layout.parameters.end(), [](const Parameter &left, const Parameter &right) {
                                          return left.offset == right.offset && left.size == right.size;
                                      });
}

} // namespace

KernelTable::KernelTable(Analysis of_ptx) : version_(next_version()), of_ptx_(std::move(of_ptx)) {}

void KernelTable::changed() {
    version_.store(next_version(), std::memory_order_release);
    functions_.clear();
}

void KernelTable::describe(Module module, std::string kernel, KernelUse use) {
    const std::lock_guard lock(mutex_);
    modules_[module].descriptions.insert_or_assign(std::move(kernel), std::move(use));
    changed();
}

void KernelTable::add_ptx(Module module, std::string text) {
    auto uses = std::make_shared<LazyUses>(std::move(text));
    const std::lock_guard lock(mutex_);
    modules_[module].ptx = std::move(uses);
    changed();
}

void KernelTable::forget(Module module) {
    const std::lock_guard lock(mutex_);
    modules_.erase(module);
    changed();
}

void KernelTable::forget_functions() {
    const std::lock_guard lock(mutex_);
    changed();
}

void KernelTable::forget_all() {
    const std::lock_guard lock(mutex_);
    modules_.clear();
    changed();
}

UseSource KernelTable::find_use(Module module, const std::string &kernel, KernelUse *use) {
    std::shared_ptr<LazyUses> ptx;
    {
        std::unique_lock lock(mutex_);
        const auto known = modules_.find(module);
        if (known == modules_.end())
            return UseSource::nothing;
        const auto description = known->second.descriptions.find(kernel);
        if (description != known->second.descriptions.end())
            *use = description->second;
        const bool is_described = description != known->second.descriptions.end();
        if (is_described && (known->second.ptx == nullptr || !is_doubtful(*use)))
            return UseSource::description;
        ptx = known->second.ptx;
        if (is_described) {
            lock.unlock();
            KernelUse in_ptx;
            if (ptx->find(kernel, of_ptx_, &in_ptx))
                use->program = std::move(in_ptx.program);
            return UseSource::description;
        }
    }
    return ptx != nullptr && ptx->find(kernel, of_ptx_, use) ? UseSource::ptx : UseSource::nothing;
}

std::shared_ptr<const KnownKernel> KernelTable::find(libcuda::Function function, const char *name,
                                                     const KernelQuestions &questions) {
    std::uint64_t version;
    {
        const std::lock_guard lock(mutex_);
        const auto known = functions_.find(function);
        if (known != functions_.end() && known->second->has_name(name))
            return known->second;
        version = version_;
    }
    const RelaxedQuestions relaxed(questions.exchange_capture_mode);
    Module module = 0;
    libcuda::Function asked = function;
    if (questions.module_of_function == nullptr || questions.module_of_function(&module, function) != success) {
        module = 0;
        if (questions.library_of_kernel != nullptr && questions.library_of_kernel(&module, function) != success)
            module = 0;
        if (module != 0 && questions.function_of_kernel != nullptr &&
            questions.function_of_kernel(&asked, function) != success)
            asked = function;
    }
    if (name == nullptr && questions.name_of_function != nullptr && questions.name_of_function(&name, asked) != success)
        name = nullptr;
    auto kernel = std::make_shared<KnownKernel>();
    kernel->name = name == nullptr ? "" : name;
    KernelUse use;
    kernel->source = find_use(module, kernel->name, &use);
    const Layout layout = layout_of(asked, use, questions);
    kernel->layout_known = layout.known;
    if (use.program != nullptr && fits(*use.program, layout))
        kernel->program = use.program;
    if (use.pointers.empty() && !use.complete) { // nothing else tells anything
        use = kernel_uses::uses_of_mangled_name(kernel->name, layout.parameters);
        if (!use.pointers.empty())
            kernel->source = UseSource::name;
    }
    kernel->complete = use.complete;
    add_pointers(use, layout, kernel.get());
    if (!kernel->complete)
        add_others(layout, kernel.get());
    const std::lock_guard lock(mutex_);
    if (version_ == version) { // otherwise the kernel may be out of date
        if (functions_.size() >= most_functions)
            functions_.clear();
        functions_.insert_or_assign(function, kernel);
    }
    return kernel;
}

KernelTable::Sizes KernelTable::sizes() {
    const std::lock_guard lock(mutex_);
    return {modules_.size(), functions_.size()};
}

KernelTable &kernel_table() {
    static Published<KernelTable> table;
    return table.get([] { return new KernelTable(kernel_uses::uses_of_ptx); });
}

} // namespace tcuda::watch
