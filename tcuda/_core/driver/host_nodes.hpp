#pragma once

#include <fstream>
#include <string>

#include "threads/published.hpp"

namespace tcuda {

// Whether the memory of this machine lies in several NUMA nodes. The system lists the nodes as in "0-1" or "0,2".
inline bool has_several_host_nodes() {
    static Published<const bool> several;
    return several.get([] {
        std::ifstream file("/sys/devices/system/node/online");
        std::string nodes;
        std::getline(file, nodes);
        return new bool(nodes.find_first_of(",-") != std::string::npos);
    });
}

} // namespace tcuda
