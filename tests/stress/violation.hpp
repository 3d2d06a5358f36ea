// The end of a stress program at the first violation of a rule.
#pragma once

#include <cstdarg>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <mutex>

inline std::uint64_t seed = 1;
inline const char *run_name = "";

// Prints the run, the seed and the message, and ends the process with the status 1.
[[noreturn]] __attribute__((format(printf, 1, 2))) inline void violation(const char *format, ...) {
    static std::mutex once; // stays locked: only the first violation is printed
    once.lock();
    std::printf("%s, seed %llu: ", run_name, static_cast<unsigned long long>(seed));
    va_list arguments;
    va_start(arguments, format);
    std::vprintf(format, arguments);
    va_end(arguments);
    std::printf("\n");
    std::fflush(stdout);
    std::_Exit(1);
}
