// How much memory of the host is left.
#pragma once

#include <cstddef>
#include <string>

namespace tcuda {

// How many more bytes this process can take without a lack of memory: for the machine, or for a control group (version
// 2) that the process is in. Memory that only caches files counts as left. A 64th of the machine's memory does not: the
// system needs some for itself. The largest number if the system does not tell. `root` is the folder that contains
// /proc and /sys.
std::size_t host_room(const std::string &root = "");

} // namespace tcuda
