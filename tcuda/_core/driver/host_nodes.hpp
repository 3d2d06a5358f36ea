#pragma once

#include <string>

#include "driver/system_file.hpp"
#include "threads/published.hpp"

namespace tcuda {

// Whether the memory of this machine lies in several NUMA nodes. The system lists the nodes as in "0-1" or "0,2".
inline bool has_several_host_nodes() {
    static Published<const bool> several;
    return several.get([] {
        const std::string nodes = text_of_file("/sys/devices/system/node/online");
        return new bool(nodes.find_first_of(",-") != std::string::npos);
    });
}

} // namespace tcuda
