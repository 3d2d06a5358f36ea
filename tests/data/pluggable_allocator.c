/* The allocator of the documentation with a log of its calls, which tests read; plugged.py knows this layout. */
#include "../../docs/examples/pluggable_allocator.c"

enum { room = 4096 };

struct call {
    int64_t freed, size, device, stream, address;
};

struct call calls[room];
atomic_int number_of_calls;
int64_t most = INT64_MAX; /* what is larger is refused */
void *repeated;           /* what is returned instead of new memory, if it is not NULL */

static void note(int freed, ssize_t size, int device, void *stream, void *address) {
    const int number = atomic_fetch_add(&number_of_calls, 1);
    if (number < room)
        calls[number] = (struct call){freed, size, device, (intptr_t)stream, (intptr_t)address};
}

void *logged_alloc(ssize_t size, int device, void *stream) {
    void *memory = repeated;
    if (memory == NULL && size <= most)
        memory = example_alloc(size, device, stream);
    note(0, size, device, stream, memory);
    return memory;
}

void logged_free(void *memory, ssize_t size, int device, void *stream) {
    note(1, size, device, stream, memory);
    example_free(memory, size, device, stream);
}
