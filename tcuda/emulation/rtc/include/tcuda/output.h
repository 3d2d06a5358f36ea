// printf of a kernel.
#pragma once

#include "tcuda/launch.h"
#include "tcuda/memory.h"

// The functions have other names in the object file, so that the core learns of the output. The compiler may replace
// printf by puts and putchar.
extern "C" {

int printf(const char *, ...) __asm__("tcuda_printf");
int puts(const char *) __asm__("tcuda_puts");
int putchar(int) __asm__("tcuda_putchar");

int tcuda_host_puts(const char *) __asm__("puts");
int tcuda_host_putchar(int) __asm__("putchar");

#ifndef TCUDA_SUPPORT_APART
TCUDA_OF_MODULE int tcuda_printf(const char *format, ...) {
    tcuda::printed = true;
    __builtin_va_list arguments;
    __builtin_va_start(arguments, format);
    int written = __builtin_vprintf(format, arguments);
    __builtin_va_end(arguments);
    return written;
}
TCUDA_OF_MODULE int tcuda_puts(const char *text) {
    tcuda::printed = true;
    return tcuda_host_puts(text);
}
TCUDA_OF_MODULE int tcuda_putchar(int character) {
    tcuda::printed = true;
    return tcuda_host_putchar(character);
}
#endif

}  // extern "C"
