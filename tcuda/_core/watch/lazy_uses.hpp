#pragma once

#include <atomic>
#include <cstddef>
#include <exception>
#include <functional>
#include <mutex>
#include <string>
#include <string_view>
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

    // Whether the code has `text` somewhere, or has been analysed and has the kernel.
    bool may_have(const std::string &kernel, std::string_view text) {
        const std::lock_guard lock(mutex_);
        return done_ ? uses_.count(kernel) != 0 : code_.find(text) != std::string::npos;
    }

    std::size_t kept() const { return kept_; } // bytes of code

private:
    std::mutex mutex_;
    std::string code_;
    std::atomic<std::size_t> kept_;
    bool done_ = false;
    kernel_uses::KernelUses uses_;
};

} // namespace tcuda::watch
