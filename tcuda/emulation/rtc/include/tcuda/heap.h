// malloc and free of a kernel: a heap of a fixed size in the module, as a device has.
#pragma once

#include "tcuda/memory.h"

namespace tcuda {

struct HeapBlock {
    size_t size;  // with the header
    size_t used;
};

constexpr size_t heap_size = 8u << 20;
alignas(16) inline unsigned char heap_bytes[heap_size];

}  // namespace tcuda

extern "C" {

// First fit: the blocks lie one after another, and neighbouring free blocks become one block.
__attribute__((used, weak)) void *tcuda_heap_allocate(size_t size) noexcept {
    using namespace tcuda;
    if (size == 0 || size > heap_size) return nullptr;
    size_t needed = (size + sizeof(HeapBlock) + 15) / 16 * 16;
    for (size_t offset = 0; offset + needed <= heap_size;) {
        HeapBlock *block = reinterpret_cast<HeapBlock *>(heap_bytes + offset);
        if (block->size == 0) *block = {heap_size - offset, 0};
        while (!block->used && offset + block->size < heap_size) {
            HeapBlock *next = reinterpret_cast<HeapBlock *>(heap_bytes + offset + block->size);
            if (next->size == 0 || next->used) break;
            block->size += next->size;
        }
        if (!block->used && block->size >= needed) {
            if (block->size - needed > sizeof(HeapBlock)) {
                HeapBlock *rest = reinterpret_cast<HeapBlock *>(heap_bytes + offset + needed);
                *rest = {block->size - needed, 0};
                block->size = needed;
            }
            block->used = 1;
            return block + 1;
        }
        offset += block->size;
    }
    return nullptr;
}

__attribute__((used, weak)) void tcuda_heap_release(void *address) noexcept {
    if (address) static_cast<tcuda::HeapBlock *>(address)[-1].used = 0;
}

__attribute__((used, weak)) void *tcuda_heap_allocate_zeros(size_t count, size_t size) noexcept {
    size_t total;
    if (__builtin_mul_overflow(count, size, &total)) return nullptr;
    unsigned char *bytes = static_cast<unsigned char *>(tcuda_heap_allocate(total));
    for (size_t i = 0; bytes && i < total; ++i) bytes[i] = 0;
    return bytes;
}

}  // extern "C"
