#include "driver/system_file.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>

namespace tcuda {

// By the calls of the system: a std::ifstream here ended processes on a machine with GCC 13.3, and depends on the
// locale.
std::string text_of_file(const std::string &path) {
    const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (file < 0)
        return "";
    std::string text;
    char part[4096];
    for (;;) {
        const ssize_t size = read(file, part, sizeof part);
        if (size < 0 && errno == EINTR)
            continue;
        if (size <= 0)
            break;
        text.append(part, static_cast<std::size_t>(size));
    }
    close(file);
    return text;
}

} // namespace tcuda
