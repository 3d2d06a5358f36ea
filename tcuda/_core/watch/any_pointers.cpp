#include "watch/any_pointers.hpp"

#include <cstring>

#include "watch/use_list.hpp"

namespace tcuda::watch {
namespace {

using races::AccessKind;

constexpr std::size_t word = sizeof(std::uint64_t);

// The entries of `extra` in cuda.h
constexpr std::uintptr_t extra_end = 0, extra_block = 1, extra_size = 2;

} // namespace

NamedOperation AnyPointers::uses_of(const Launch &launch) {
    static thread_local UseList uses;
    uses.clear();
    const auto look_at = [&](const char *begin, std::size_t size) {
        for (std::size_t place = 0; place + word <= size; place += word) {
            std::uint64_t value = 0;
            std::memcpy(&value, begin + place, word);
            const auto memory = detector_.live_memory(value);
            if (memory)
                uses.add(value, memory->address + memory->size - value, AccessKind::both, true, "");
        }
    };
    if (launch.parameters != nullptr && questions_.parameter_info != nullptr) {
        std::size_t offset = 0, size = 0;
        for (std::size_t index = 0; questions_.parameter_info(launch.function, index, &offset, &size) == success; ++index)
            look_at(static_cast<const char *>(launch.parameters[index]), size);
    } else if (launch.parameters == nullptr && launch.extra != nullptr) {
        const char *block = nullptr;
        std::size_t size = 0;
        for (void **entry = launch.extra; reinterpret_cast<std::uintptr_t>(*entry) != extra_end; entry += 2) {
            if (reinterpret_cast<std::uintptr_t>(*entry) == extra_block)
                block = static_cast<const char *>(entry[1]);
            else if (reinterpret_cast<std::uintptr_t>(*entry) == extra_size)
                size = *static_cast<const std::size_t *>(entry[1]);
        }
        if (block != nullptr)
            look_at(block, size);
    }
    return {launch.name == nullptr ? std::string_view("kernel") : std::string_view(launch.name), uses.get()};
}

} // namespace tcuda::watch
