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

// The code of a module and the uses of its kernels, which are worked out when a thread first asks. Threads that ask for
// the kernels of the same code wait for each other; the code is dropped afterwards.
class LazyUses {
public:
    using Analysis = std::function<kernel_uses::KernelUses(std::string_view code)>;

    explicit LazyUses(std::string code) : code_(std::move(code)), kept_(code_.size()) {}
    LazyUses(const LazyUses &) = delete;
    LazyUses &operator=(const LazyUses &) = delete;

    // Whether the kernel is in the code. Copies what the kernel uses.
    bool find(const std::string &kernel, const Analysis &analysis, kernel_uses::KernelUse *use) {
        const std::lock_guard lock(mutex_);
        if (!done_) {
            done_ = true;
            try {
                if (analysis)
                    uses_ = analysis(code_);
            } catch (const std::exception &) { // a text that cannot be read tells nothing
            }
            code_ = {};
            kept_ = 0;
        }
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
