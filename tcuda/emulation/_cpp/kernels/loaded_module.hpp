// A module: a shared library that the C++ compiler has made of CUDA C++ source.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include <tcuda_abi.h>

namespace tcuda {

// A load of the library, with global variables of its own.
//
// The threads of a grid share the global variables of the module. So one grid at a time uses the module.
class LoadedModule {
public:
    struct Memory {
        std::uintptr_t address;
        std::size_t size;
    };

    struct Segment {
        abi::Range range;
        bool code;
    };

    // Loads the library from its bytes. Throws std::runtime_error with the text of the dynamic linker.
    explicit LoadedModule(std::string_view content);
    ~LoadedModule();
    LoadedModule(const LoadedModule &) = delete;
    LoadedModule &operator=(const LoadedModule &) = delete;

    // The kernel that the program has asked for by `name`, or whose symbol is `name`; null if there is none.
    const abi::Kernel *kernel(const std::string &name) const;
    std::vector<std::string> kernel_names() const;
    // A global variable by its symbol.
    std::optional<Memory> variable(const std::string &name) const;

    const abi::Module &interface() const { return *interface_; }
    // The memory of the library: code, constants and variables.
    abi::Range range() const { return range_; }
    // The variables of the headers, in this memory.
    abi::Range headers() const {
        return {reinterpret_cast<std::uintptr_t>(interface_->headers_begin),
                reinterpret_cast<std::uintptr_t>(interface_->headers_end)};
    }
    // The parts of this memory that can be read.
    const std::vector<Segment> &segments() const { return segments_; }

    // Waits until no grid uses the module; false if that takes longer than `patience`. Throws std::logic_error if a
    // grid of this thread uses the module.
    bool acquire(std::chrono::milliseconds patience);
    // Called by any thread.
    void release();

private:
    void *library_ = nullptr;
    const abi::Module *interface_ = nullptr;
    abi::Range range_{};
    std::vector<Segment> segments_;
    std::mutex mutex_;
    std::condition_variable released_;
    std::optional<std::thread::id> user_;
};

} // namespace tcuda
