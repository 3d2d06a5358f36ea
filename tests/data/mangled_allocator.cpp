// Functions of an allocator that lack extern "C", so that their names have the types of their parameters.
#include <sys/types.h>

#include <cstdlib>

void *plain_alloc(ssize_t size, int, void *) { return std::malloc(size); }

void plain_free(void *pointer, ssize_t, int, void *) { std::free(pointer); }
