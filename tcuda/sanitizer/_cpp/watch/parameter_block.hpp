#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "driver/driver.hpp"
#include "sanitizer/_cpp/watch/known_kernel.hpp"
#include "sanitizer/_cpp/watch/launch_uses.hpp"

namespace tcuda::watch {

// The parameters of a launch: a list of the parameters' addresses, or one block that has all parameters.
class ParameterBlock {
public:
    explicit ParameterBlock(const Launch &launch) : parameters_(launch.parameters) {
        if (parameters_ != nullptr || launch.extra == nullptr)
            return;
        for (void **entry = launch.extra; number(*entry) != list_end; entry += 2) {
            if (number(entry[0]) == list_block)
                block_ = static_cast<const char *>(entry[1]);
            else if (number(entry[0]) == list_size && entry[1] != nullptr)
                std::memcpy(&size_, entry[1], sizeof size_);
            else
                break; // an entry that no driver knows
        }
        if (block_ == nullptr)
            size_ = 0;
    }

    // Copies bytes of the parameters, `skip` bytes behind a place. False if they cannot be read.
    bool read(const ParameterBytes &place, std::size_t skip, void *to, std::size_t size) const {
        const char *const from = at(place, skip + size);
        if (from == nullptr)
            return false;
        std::memcpy(to, from + skip, size);
        return true;
    }

    bool is_block() const { return block_ != nullptr; }
    std::size_t size() const { return size_; } // of the block

private:
    // The entries of the list `extra` in cuda.h
    static constexpr std::uintptr_t list_end = 0, list_block = 1, list_size = 2;
    static std::uintptr_t number(const void *entry) { return reinterpret_cast<std::uintptr_t>(entry); }

    const char *at(const ParameterBytes &place, std::size_t size) const {
        if (block_ != nullptr)
            return place.offset <= size_ && size <= size_ - place.offset ? block_ + place.offset : nullptr;
        if (parameters_ == nullptr || place.parameter == ParameterBytes::unknown ||
            parameters_[place.parameter] == nullptr)
            return nullptr;
        return static_cast<const char *>(parameters_[place.parameter]) + place.inside;
    }

    void *const *parameters_;
    const char *block_ = nullptr;
    std::size_t size_ = 0;
};

} // namespace tcuda::watch
