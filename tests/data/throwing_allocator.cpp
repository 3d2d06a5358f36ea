// An allocator whose functions throw. Tests set the functions of another library that allocate and free the memory.
#include <cstddef>
#include <new>
#include <stdexcept>

extern "C" {

enum { nothing, error, bad_alloc, number };
int alloc_throws = nothing, free_throws = nothing;
void *(*alloc_with)(std::ptrdiff_t, int, void *);
void (*free_with)(void *, std::ptrdiff_t, int, void *);
}

static void fail(int with) {
    if (with == error)
        throw std::runtime_error("the library is on strike");
    if (with == bad_alloc)
        throw std::bad_alloc();
    if (with == number)
        throw 42;
}

extern "C" void *throwing_alloc(std::ptrdiff_t size, int device, void *stream) {
    fail(alloc_throws);
    return alloc_with(size, device, stream);
}

extern "C" void throwing_free(void *memory, std::ptrdiff_t size, int device, void *stream) {
    free_with(memory, size, device, stream);
    fail(free_throws);
}
