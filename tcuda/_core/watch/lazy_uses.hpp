#pragma once

#include <atomic>
#include <cstddef>
#include <exception>
#include <functional>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_set>
#include <utility>

#include "kernel_uses/kernel_use.hpp"

namespace tcuda::watch {

// The code of a module, and the uses of its kernels, which are analysed when a thread first asks for a kernel. Threads
// that ask for kernels of the same code wait for each other. Small code is dropped after its analysis.
class LazyUses {
public:
    // Analyses one kernel, or all kernels of the code if `kernel` is null.
    using Analysis = std::function<kernel_uses::KernelUses(std::string_view code, const char *kernel)>;

    explicit LazyUses(std::string code) : code_(std::move(code)), kept_(code_.size()) {}
    LazyUses(const LazyUses &) = delete;
    LazyUses &operator=(const LazyUses &) = delete;

    // Whether the kernel is in the code. Copies what the kernel uses.
    bool find(const std::string &kernel, const Analysis &analysis, kernel_uses::KernelUse *use) {
        const std::lock_guard lock(mutex_);
        if (!done_ && uses_.count(kernel) == 0)
            analyse(kernel, analysis);
        const auto known = uses_.find(kernel);
        if (known == uses_.end())
            return false;
        *use = known->second;
        return true;
    }

    // Whether the code is a cubin that has a section for the kernel.
    bool has_section(const std::string &kernel) {
        const std::lock_guard lock(mutex_);
        if (!listed_) {
            listed_ = true;
            list_sections();
        }
        return sections_.count(kernel) != 0;
    }

    std::size_t kept() const { return kept_; } // bytes of code

private:
    // A library has thousands of kernels in a cubin, of which a program uses few.
    static constexpr std::size_t most_whole = std::size_t(1) << 20; // bytes of code whose kernels are analysed together

    void analyse(const std::string &kernel, const Analysis &analysis) {
        const bool whole = code_.size() <= most_whole;
        kernel_uses::KernelUses found;
        try {
            if (analysis)
                found = analysis(code_, whole ? nullptr : kernel.c_str());
        } catch (const std::exception &) { // a text that cannot be read tells nothing
        }
        uses_.merge(std::move(found));
        if (whole) {
            done_ = true;
            code_ = {};
            kept_ = 0;
        } else if (sections_.count(kernel) != 0) {
            uses_.try_emplace(kernel); // the kernel is not analysed again
        }
    }

    // The code of a kernel is in a section, whose name is a text in the cubin.
    void list_sections() {
        constexpr std::string_view prefix = ".text.";
        for (std::size_t place = code_.find(prefix); place != std::string::npos; place = code_.find(prefix, place)) {
            place += prefix.size();
            sections_.emplace(code_, place, code_.find('\0', place) - place);
        }
    }

    std::mutex mutex_;
    std::string code_;
    std::atomic<std::size_t> kept_;
    bool done_ = false, listed_ = false;
    std::unordered_set<std::string> sections_; // of kernels
    kernel_uses::KernelUses uses_;
};

} // namespace tcuda::watch
