// malloc and free of a kernel: a heap of a fixed size in the module, like the heap of a device.
#pragma once

#include "tcuda/memory.h"

#ifndef TCUDA_SUPPORT_APART

namespace tcuda {

struct HeapBlock {
    size_t size;  // includes the header
    size_t used;  // heap_mark, or 0
};

constexpr size_t heap_size = abi::heap_capacity;
constexpr size_t heap_mark = 0x75736564;
alignas(16) TCUDA_HIDDEN unsigned char heap_bytes[heap_size];

}  // namespace tcuda

extern "C" {

// First fit: the blocks lie one after another, and neighbouring free blocks become one block.
TCUDA_OF_MODULE void *tcuda_heap_allocate(size_t size) noexcept {
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
            block->used = heap_mark;
            // The accesses of earlier owners of the memory are no races.
            touch(reinterpret_cast<abi::Address>(block + 1), block->size - sizeof(HeapBlock), abi::Touch::fresh, nullptr);
            return block + 1;
        }
        offset += block->size;
    }
    return nullptr;
}

TCUDA_OF_MODULE void tcuda_heap_release(void *address) noexcept {
    using namespace tcuda;
    if (!address) return;
    const size_t place = static_cast<unsigned char *>(address) - heap_bytes - sizeof(HeapBlock);
    HeapBlock *block = static_cast<HeapBlock *>(address) - 1;
    if (place > heap_size - sizeof(HeapBlock) || place % 16 != 0 || block->used != heap_mark) {
        static char text[128];
        __builtin_snprintf(text, sizeof text, "free() or delete of %p, which malloc() or new has not returned, or which is free",
                           address);
        fail("trap", text);
    }
    block->used = 0;
}

TCUDA_OF_MODULE void *tcuda_heap_allocate_zeros(size_t count, size_t size) noexcept {
    size_t total;
    if (__builtin_mul_overflow(count, size, &total)) return nullptr;
    unsigned char *bytes = static_cast<unsigned char *>(tcuda_heap_allocate(total));
    for (size_t i = 0; bytes && i < total; ++i) bytes[i] = 0;
    return bytes;
}

}  // extern "C"

#endif

// The operators of the host allocate memory of the host. Without the labels, the host would use the operators of the
// module, because the compiler ignores an attribute of visibility here.
__asm__(".hidden _Znwm\n.hidden _Znam\n.hidden _ZdlPv\n.hidden _ZdaPv\n.hidden _ZdlPvm\n.hidden _ZdaPvm");

#ifndef TCUDA_SUPPORT_APART
__attribute__((used, weak)) TCUDA_UNSANITIZED void *operator new(size_t size) {
    return tcuda_heap_allocate(size == 0 ? 1 : size);
}
__attribute__((used, weak)) TCUDA_UNSANITIZED void *operator new[](size_t size) {
    return tcuda_heap_allocate(size == 0 ? 1 : size);
}
__attribute__((used, weak)) TCUDA_UNSANITIZED void operator delete(void *address) noexcept {
    tcuda_heap_release(address);
}
__attribute__((used, weak)) TCUDA_UNSANITIZED void operator delete[](void *address) noexcept {
    tcuda_heap_release(address);
}
__attribute__((used, weak)) TCUDA_UNSANITIZED void operator delete(void *address, size_t) noexcept {
    tcuda_heap_release(address);
}
__attribute__((used, weak)) TCUDA_UNSANITIZED void operator delete[](void *address, size_t) noexcept {
    tcuda_heap_release(address);
}
#endif
