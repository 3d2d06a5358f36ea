// A range of bytes that is read only inside its bounds.
#pragma once

#include <cstddef>
#include <cstring>
#include <optional>
#include <string_view>
#include <type_traits>

namespace tcuda::kernel_uses {

class ByteView {
public:
    ByteView() = default;
    ByteView(const std::byte *data, std::size_t size) : data_(data), size_(size) {}

    std::size_t size() const { return size_; }

    // None if a part of the range lies outside.
    std::optional<ByteView> part(std::uint64_t offset, std::uint64_t size) const {
        if (offset > size_ || size > size_ - offset)
            return std::nullopt;
        return ByteView(data_ + offset, std::size_t(size));
    }

    // The number is little-endian, as on all machines that run CUDA. None if a part of the number lies outside.
    template <typename T> std::optional<T> number(std::uint64_t offset) const {
        static_assert(std::is_trivially_copyable_v<T>);
        if (offset > size_ || sizeof(T) > size_ - offset)
            return std::nullopt;
        T value;
        std::memcpy(&value, data_ + offset, sizeof value);
        return value;
    }

    // The text from `offset` to the next zero byte; none if there is no zero byte.
    std::optional<std::string_view> text(std::uint64_t offset) const {
        if (offset >= size_)
            return std::nullopt;
        const auto begin = reinterpret_cast<const char *>(data_) + offset;
        const void *end = std::memchr(begin, 0, size_ - std::size_t(offset));
        if (end == nullptr)
            return std::nullopt;
        return std::string_view(begin, std::size_t(static_cast<const char *>(end) - begin));
    }

private:
    const std::byte *data_ = nullptr;
    std::size_t size_ = 0;
};

} // namespace tcuda::kernel_uses
