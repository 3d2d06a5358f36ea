// A library for LD_PRELOAD in which one call of operator new fails.
#include <cstdlib>
#include <new>

extern "C" {
thread_local long news_left = -1; // the calls before the failing call; no call fails if negative
long *news_left_here() { return &news_left; }
}

void *operator new(std::size_t size) {
    if (news_left >= 0 && news_left-- == 0)
        throw std::bad_alloc();
    void *memory = std::malloc(size == 0 ? 1 : size);
    if (memory == nullptr)
        throw std::bad_alloc();
    return memory;
}
