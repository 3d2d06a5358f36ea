#pragma once

#include <exception>
#include <functional>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>

#include "sanitizer/_cpp/kernel_uses/kernel_use.hpp"

namespace tcuda::watch {

// The PTX of a module, and the uses of its kernels. The text is analysed when a thread first asks for a kernel, and
// then dropped. Threads that ask for kernels of the same module wait for each other.
class LazyUses {
public:
    using Analysis = std::function<kernel_uses::KernelUses(std::string_view text)>;

    explicit LazyUses(std::string text) : text_(std::move(text)) {}
    LazyUses(const LazyUses &) = delete;
    LazyUses &operator=(const LazyUses &) = delete;

    // Whether the kernel is in the text. Copies what the kernel uses.
    bool find(const std::string &kernel, const Analysis &analysis, kernel_uses::KernelUse *use) {
        const std::lock_guard lock(mutex_);
        if (!done_)
            analyse(analysis);
        const auto known = uses_.find(kernel);
        if (known == uses_.end())
            return false;
        *use = known->second;
        return true;
    }

private:
    void analyse(const Analysis &analysis) {
        done_ = true;
        try {
            if (analysis)
                uses_ = analysis(text_);
        } catch (const std::exception &) { // a text that cannot be read tells nothing
        }
        text_ = {};
    }

    std::mutex mutex_;
    std::string text_;
    bool done_ = false;
    kernel_uses::KernelUses uses_;
};

} // namespace tcuda::watch
