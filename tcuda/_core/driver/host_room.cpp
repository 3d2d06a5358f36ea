#include "driver/host_room.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <fstream>
#include <limits>

namespace tcuda {
namespace {

constexpr std::size_t unlimited = std::numeric_limits<std::size_t>::max();

// The numbers behind `names`, which begin lines of a file; -1 for a name that begins no line.
std::array<std::int64_t, 2> numbers_of(const std::string &path, const std::array<const char *, 2> &names) {
    std::array<std::int64_t, 2> found{-1, -1};
    std::ifstream file(path);
    std::int64_t number;
    for (std::string name, rest; (found[0] < 0 || found[1] < 0) && file >> name >> number; std::getline(file, rest))
        for (std::size_t place = 0; place < names.size(); ++place)
            if (name == names[place])
                found[place] = number;
    return found;
}

// The number in a file; -1 if the file does not begin with a number.
std::int64_t number_in(const std::string &path) {
    std::ifstream file(path);
    std::int64_t number;
    return file >> number ? number : -1;
}

std::size_t room_of_machine(const std::string &root) {
    const auto [total, available] = numbers_of(root + "/proc/meminfo", {"MemTotal:", "MemAvailable:"});
    if (available < 0 || total < 0)
        return unlimited;
    return static_cast<std::size_t>(std::max<std::int64_t>(available - total / 64, 0)) << 10;
}

std::size_t room_of_group(const std::string &folder) {
    const std::int64_t most = number_in(folder + "/memory.max"); // the word "max" without a limit
    const std::int64_t used = most < 0 ? -1 : number_in(folder + "/memory.current");
    if (used < 0)
        return unlimited;
    const auto [active, inactive] = numbers_of(folder + "/memory.stat", {"active_file", "inactive_file"});
    const std::int64_t left = most - used + std::max<std::int64_t>(active, 0) + std::max<std::int64_t>(inactive, 0);
    return static_cast<std::size_t>(std::max<std::int64_t>(left, 0));
}

// The group of this process, such as "/user.slice/session.scope"; empty for the first group.
std::string group_of_process(const std::string &root) {
    std::ifstream file(root + "/proc/self/cgroup");
    for (std::string line; std::getline(file, line);)
        if (line.rfind("0::/", 0) == 0)
            return line == "0::/" ? "" : line.substr(3);
    return "";
}

} // namespace

std::size_t host_room(const std::string &root) {
    std::size_t room = room_of_machine(root);
    std::string group = group_of_process(root);
    for (;;) { // a group has the limits of all groups around it, too
        room = std::min(room, room_of_group(root + "/sys/fs/cgroup" + group));
        if (group.empty())
            return room;
        group.resize(group.rfind('/'));
    }
}

} // namespace tcuda
