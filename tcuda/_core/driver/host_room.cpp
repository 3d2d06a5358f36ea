#include "driver/host_room.hpp"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <limits>
#include <string_view>

#include "driver/system_file.hpp"

namespace tcuda {
namespace {

constexpr std::size_t unlimited = std::numeric_limits<std::size_t>::max();

// The number that a text begins with, behind blanks; -1 if there is none.
std::int64_t number_of(std::string_view text) {
    const std::size_t begin = text.find_first_not_of(' ');
    std::int64_t number = -1;
    if (begin != std::string_view::npos)
        std::from_chars(text.data() + begin, text.data() + text.size(), number);
    return number;
}

// The number behind `name`, which begins a line of the text; -1 if no line begins so.
std::int64_t number_behind(const std::string &name, std::string_view text) {
    while (!text.empty()) {
        const std::string_view line = text.substr(0, text.find('\n'));
        if (line.size() > name.size() && line[name.size()] == ' ' && line.substr(0, name.size()) == name)
            return number_of(line.substr(name.size()));
        text.remove_prefix(std::min(line.size() + 1, text.size()));
    }
    return -1;
}

std::size_t room_of_machine(const std::string &root) {
    const std::string facts = text_of_file(root + "/proc/meminfo");
    const std::int64_t total = number_behind("MemTotal:", facts), available = number_behind("MemAvailable:", facts);
    if (available < 0 || total < 0)
        return unlimited;
    return static_cast<std::size_t>(std::max<std::int64_t>(available - total / 64, 0)) << 10;
}

std::size_t room_of_group(const std::string &folder) {
    const std::int64_t most = number_of(text_of_file(folder + "/memory.max")); // the word "max" without a limit
    const std::int64_t used = most < 0 ? -1 : number_of(text_of_file(folder + "/memory.current"));
    if (used < 0)
        return unlimited;
    const std::string facts = text_of_file(folder + "/memory.stat");
    const std::int64_t active = number_behind("active_file", facts), inactive = number_behind("inactive_file", facts);
    const std::int64_t left = most - used + std::max<std::int64_t>(active, 0) + std::max<std::int64_t>(inactive, 0);
    return static_cast<std::size_t>(std::max<std::int64_t>(left, 0));
}

// The group of this process, such as "/user.slice/session.scope"; empty for the first group.
std::string group_of_process(const std::string &root) {
    const std::string groups = "\n" + text_of_file(root + "/proc/self/cgroup"), begin = "\n0::";
    const std::size_t found = groups.find(begin + "/");
    if (found == std::string::npos)
        return "";
    const std::size_t name = found + begin.size();
    const std::string group = groups.substr(name, groups.find('\n', name) - name);
    return group == "/" ? "" : group;
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
