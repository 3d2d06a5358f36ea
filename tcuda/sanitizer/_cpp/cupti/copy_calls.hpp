// The calls that copy.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "sanitizer/_cpp/cupti/call_depth.hpp"
#include "sanitizer/_cpp/cupti/call_parameters.hpp"
#include "sanitizer/_cpp/cupti/seen_call.hpp"

namespace tcuda::cupti {

using Memory = watch::CopyEnd::Memory;

// Tells the watch of copies. At the start of the call, the watch only looks for protected memory.
inline void tell(const SeenCall &call, watch::CallStream stream, const watch::Copy &copy) {
    if (!call.entered)
        call.watch.copied(stream, copy);
    else if (call.watch.uses_watched_memory(&copy, 1))
        open_pages_in_call();
}
inline void tell(const SeenCall &call, watch::CallStream stream, const std::vector<watch::Copy> &copies) {
    if (!call.entered)
        call.watch.copied_batch(stream, copies);
    else if (call.watch.uses_watched_memory(copies.data(), copies.size()))
        open_pages_in_call();
}

template <Memory target, Memory source, bool blocking> void copy_bytes(const SeenCall &call) {
    const auto &copy = call.as<CopyAny>();
    tell(call, stream_of<CopyAny>(call, blocking),
         {{target, copy.target}, {source, copy.source}, copy.size, 1, 1, blocking});
}

template <bool blocking> void copy_peer(const SeenCall &call) {
    const auto &copy = call.as<CopyPeer>();
    tell(call, stream_of<CopyPeer>(call, blocking),
         {{Memory::device, copy.target}, {Memory::device, copy.source}, copy.size, 1, 1, blocking});
}

template <Memory source, bool blocking> void copy_to_array(const SeenCall &call) {
    const auto &copy = call.as<CopyToArray>();
    tell(call, stream_of<CopyToArray>(call, blocking),
         {{Memory::array}, {source, copy.source}, copy.size, 1, 1, blocking});
}

template <Memory target, bool blocking> void copy_from_array(const SeenCall &call) {
    const auto &copy = call.as<CopyFromArray>();
    tell(call, stream_of<CopyFromArray>(call, blocking),
         {{target, copy.target}, {Memory::array}, copy.size, 1, 1, blocking});
}

inline watch::CopyEnd end_of(int memory_type, std::uintptr_t host, std::uintptr_t device, std::size_t offset,
                             std::size_t pitch, std::size_t slice) {
    switch (memory_type) {
    case memory_array:
        return {Memory::array};
    case memory_host:
        return {Memory::host, host + offset, pitch, slice};
    case memory_device:
        return {Memory::device, device + offset, pitch, slice};
    default:
        return {Memory::unified, device + offset, pitch, slice};
    }
}

template <bool blocking> void copy_rows(const SeenCall &call) {
    const libcuda::RowCopy *const copy = call.as<CopyRows>().copy;
    if (copy == nullptr)
        return;
    const auto end = [&](const libcuda::RowCopyEnd &end) {
        const std::size_t pitch = end.pitch != 0 ? end.pitch : copy->width;
        return end_of(end.memory_type, end.host, end.device, end.y * pitch + end.x, pitch, 0);
    };
    tell(call, stream_of<CopyRows>(call, blocking),
         {end(copy->target), end(copy->source), copy->width, copy->height, 1, blocking});
}

template <bool blocking> void copy_box(const SeenCall &call) {
    const libcuda::MemcpyNode *const copy = call.as<CopyBox>().copy;
    if (copy == nullptr)
        return;
    const auto end = [&](const libcuda::MemcpyEnd &end) {
        const std::size_t pitch = end.pitch != 0 ? end.pitch : copy->width;
        const std::size_t slice = pitch * (end.height != 0 ? end.height : copy->height);
        return end_of(end.memory_type, end.host, end.device, end.z * slice + end.y * pitch + end.x, pitch, slice);
    };
    tell(call, stream_of<CopyBox>(call, blocking),
         {end(copy->target), end(copy->source), copy->width, copy->height, copy->depth, blocking});
}

template <typename Parameters> void copy_batch(const SeenCall &call) {
    const auto &batch = call.as<Parameters>();
    std::vector<watch::Copy> copies;
    for (std::size_t place = 0; place < batch.count; ++place)
        copies.push_back({{Memory::unified, static_cast<Address>(batch.targets[place])},
                          {Memory::unified, static_cast<Address>(batch.sources[place])},
                          batch.sizes[place]});
    tell(call, call.stream(batch.stream), copies);
}

// In a copy from or to an array, the extent counts items of the array, whose size is unknown here. Such a copy is left
// out.
template <typename Parameters> void copy_boxes(const SeenCall &call) {
    const auto &batch = call.as<Parameters>();
    std::vector<watch::Copy> copies;
    for (const BoxOperation *operation = batch.operations; operation != batch.operations + batch.count; ++operation) {
        if (operation->target.type != operand_pointer || operation->source.type != operand_pointer)
            continue;
        const auto end = [&](const BoxOperand &operand) {
            const std::size_t pitch = operand.row_length != 0 ? operand.row_length : operation->width;
            const std::size_t rows = operand.layer_height != 0 ? operand.layer_height : operation->height;
            return watch::CopyEnd{Memory::unified, static_cast<Address>(operand.pointer), pitch, pitch * rows};
        };
        copies.push_back(
            {end(operation->target), end(operation->source), operation->width, operation->height, operation->depth});
    }
    tell(call, call.stream(batch.stream), copies);
}

} // namespace tcuda::cupti
