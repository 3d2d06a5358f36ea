// The files in which the system tells facts, such as those below /proc and /sys.
#pragma once

#include <string>

namespace tcuda {

// The text of a file. Empty if the file cannot be read.
std::string text_of_file(const std::string &path);

} // namespace tcuda
