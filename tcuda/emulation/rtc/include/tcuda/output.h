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

int tcuda_host_printf(const char *, ...) __asm__("printf");
int tcuda_host_putchar(int) __asm__("putchar");

#ifndef TCUDA_SUPPORT_APART
// The output is locked only while a finished text is written: a wrong address among the arguments ends the kernel.
TCUDA_OF_MODULE int tcuda_printf(const char *format, ...) {
    __builtin_va_list arguments, again;
    __builtin_va_start(arguments, format);
    __builtin_va_copy(again, arguments);
    const int size = __builtin_vsnprintf(nullptr, 0, format, arguments);
    __builtin_va_end(arguments);
    if (size >= 0 && !tcuda::services.silent) {
        char *text = static_cast<char *>(__builtin_alloca(size + 1));
        __builtin_vsnprintf(text, size + 1, format, again);
        tcuda::printed = true;
        for (int done = 0; done < size;) {
            done += tcuda_host_printf("%.*s", size - done, text + done);  // up to a null
            if (done < size) {
                tcuda_host_putchar(0);
                ++done;
            }
        }
    }
    __builtin_va_end(again);
    return size;
}
TCUDA_OF_MODULE int tcuda_puts(const char *text) {
    return tcuda_printf("%s\n", text);
}
TCUDA_OF_MODULE int tcuda_putchar(int character) {
    if (tcuda::services.silent) return character;
    tcuda::printed = true;
    return tcuda_host_putchar(character);
}
#endif

}  // extern "C"
