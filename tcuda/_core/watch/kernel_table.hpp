// What is known about kernels: descriptions, PTX and cubins of modules.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "driver/libcuda_types.hpp"
#include "kernel_uses/kernel_use.hpp"
#include "watch/kernel_questions.hpp"
#include "watch/known_kernel.hpp"
#include "watch/launch_uses.hpp"
#include "watch/lazy_uses.hpp"

namespace tcuda::watch {

// Any thread may call any function. The mutex is a leaf: neither the driver is called nor code analysed under it. The
// code of a kernel without a description is analysed at the first launch: small code as a whole, large code kernel by
// kernel.
class KernelTable {
public:
    using Analysis = LazyUses::Analysis;

    KernelTable();
    KernelTable(const KernelTable &) = delete;
    KernelTable &operator=(const KernelTable &) = delete;

    // Null functions know nothing. Called before the first launch.
    void set_analyses(Analysis of_ptx, Analysis of_cubin);

    // Modules. Later knowledge replaces earlier knowledge.
    void describe(Module module, std::string kernel, kernel_uses::KernelUse use);
    void add_ptx(Module module, std::string text);
    void add_cubin(std::uint32_t number, const std::byte *bytes, std::size_t size); // copies the bytes
    void add_cubins(Module module, const std::uint32_t *numbers, std::size_t count);
    void forget_cubin(std::uint32_t number);
    void forget(Module module);

    // Forgets which kernel each function is. Called where functions may have gone unseen.
    void forget_functions();
    void forget_all();

    // What is asked of a kernel. The analysis of a large cubin takes half a second.
    enum class Need { description, code };
    // The kernel of a function. `name` may be null.
    std::shared_ptr<const KnownKernel> find(libcuda::Function function, const char *name,
                                            const KernelQuestions &questions, Need need);

    // Whether a kernel that find() has returned for a function is what find() would return for these arguments.
    static bool serves(const KnownKernel &kernel, const char *name, Need need) {
        return (name == nullptr || kernel.name == name) && (need == Need::description || kernel.code_read);
    }
    // A number that changes whenever find() may return another kernel than before. No two tables have the same number.
    std::uint64_t version() const { return version_.load(std::memory_order_acquire); }

    struct Sizes {
        std::size_t modules, functions, cubins, cubin_bytes;
    };
    Sizes sizes();

private:
    static constexpr std::size_t most_cubin_bytes = std::size_t(256) << 20; // of all cubins that are kept
    static constexpr std::size_t most_functions = std::size_t(1) << 16;

    struct Facts {
        kernel_uses::KernelUses descriptions;
        std::shared_ptr<LazyUses> ptx;
        std::vector<std::uint32_t> cubins;
    };

    bool find_use(Module module, const std::string &kernel, Need need, kernel_uses::KernelUse *use, UseSource *source);
    // With the mutex:
    void changed();
    std::size_t cubin_bytes() const; // that are kept

    std::mutex mutex_;
    std::unordered_map<Module, Facts> modules_;
    std::map<std::uint32_t, std::shared_ptr<LazyUses>> cubins_; // by CUPTI's number
    std::unordered_map<libcuda::Function, std::shared_ptr<const KnownKernel>> functions_;
    std::atomic<std::uint64_t> version_; // another number after each change, which is made with the mutex
    Analysis of_ptx_, of_cubin_;
};

// The table of this process. The table is never destroyed.
KernelTable &kernel_table();

} // namespace tcuda::watch
