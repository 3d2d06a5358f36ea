// The known kernels: descriptions and PTX of modules.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "driver/libcuda_types.hpp"
#include "sanitizer/_cpp/kernel_uses/kernel_use.hpp"
#include "sanitizer/_cpp/watch/kernel_questions.hpp"
#include "sanitizer/_cpp/watch/known_kernel.hpp"
#include "sanitizer/_cpp/watch/launch_uses.hpp"
#include "sanitizer/_cpp/watch/lazy_uses.hpp"

namespace tcuda::watch {

// Any thread may call any function. The mutex is a leaf: neither the driver is called nor PTX analysed under it. The
// PTX of a module is analysed when a kernel without a description is first launched.
class KernelTable {
public:
    using Analysis = LazyUses::Analysis;

    // Without an analysis, PTX tells nothing.
    explicit KernelTable(Analysis of_ptx = {});
    KernelTable(const KernelTable &) = delete;
    KernelTable &operator=(const KernelTable &) = delete;

    // Modules. Later knowledge replaces earlier knowledge.
    void describe(Module module, std::string kernel, kernel_uses::KernelUse use);
    void add_ptx(Module module, std::string text);
    void forget(Module module);

    // Forgets which kernel each function is. Called where functions may have gone unseen.
    void forget_functions();
    void forget_all();

    // The kernel of a function. `name` may be null.
    std::shared_ptr<const KnownKernel> find(libcuda::Function function, const char *name,
                                            const KernelQuestions &questions);

    // A number that changes whenever find() may return another kernel than before. No two tables have the same number.
    std::uint64_t version() const { return version_.load(std::memory_order_acquire); }

    struct Sizes {
        std::size_t modules, functions;
    };
    Sizes sizes();

private:
    static constexpr std::size_t most_functions = std::size_t(1) << 16;

    struct Facts {
        kernel_uses::KernelUses descriptions;
        std::shared_ptr<LazyUses> ptx;
    };

    // Where the use comes from; `nothing` if the kernel is unknown.
    UseSource find_use(Module module, const std::string &kernel, kernel_uses::KernelUse *use);
    void changed(); // called with the mutex

    std::mutex mutex_;
    std::unordered_map<Module, Facts> modules_;
    std::unordered_map<libcuda::Function, std::shared_ptr<const KnownKernel>> functions_;
    std::atomic<std::uint64_t> version_; // another number after each change, which is made with the mutex
    const Analysis of_ptx_;
};

// The table of this process, with the analysis of PTX. The table is never destroyed.
KernelTable &kernel_table();

} // namespace tcuda::watch
