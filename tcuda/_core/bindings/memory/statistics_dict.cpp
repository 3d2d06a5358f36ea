#include "bindings/memory/statistics_dict.hpp"

#include <algorithm>
#include <array>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "bindings/python/checked.hpp"
#include "bindings/python/containers.hpp"
#include "bindings/python/interned.hpp"
#include "threads/published.hpp"

namespace nb = nanobind;

namespace tcuda {
namespace {

const std::string of_pools = "reserved_bytes_by_private_pools.";

// Visits the members of the statistics in the order of the dictionary, each with its name.
template <typename Visitor> void visit(const Statistics &statistics, Visitor &visitor) {
    visitor.add("active", statistics.active);
    visitor.add("active_bytes", statistics.active_bytes);
    visitor.add("allocated_bytes", statistics.allocated_bytes);
    visitor.add("allocation", statistics.allocation);
    visitor.add("inactive_split", statistics.inactive_split);
    visitor.add("inactive_split_bytes", statistics.inactive_split_bytes);
    visitor.add("max_split_size", statistics.max_split_size);
    visitor.add("num_alloc_retries", statistics.num_alloc_retries);
    visitor.add("num_device_alloc", statistics.num_device_alloc);
    visitor.add("num_device_free", statistics.num_device_free);
    visitor.add("num_oom_rejections", statistics.num_oom_rejections);
    visitor.add("num_ooms", statistics.num_ooms);
    visitor.add("num_sync_all_streams", statistics.num_sync_all_streams);
    visitor.add("oversize_allocations", statistics.oversize_allocations);
    visitor.add("oversize_segments", statistics.oversize_segments);
    visitor.add("requested_bytes", statistics.requested_bytes);
    visitor.add("reserved_bytes", statistics.reserved_bytes);
    visitor.add("segment", statistics.segment);
    visitor.add("sleeping_bytes", statistics.sleeping_bytes);
}

// The parts of `name`, down to single numbers.
template <typename Visitor, typename Name>
void visit_parts(Visitor &visitor, const Name &name, const Counter &counter) {
    visitor.add(name + ".allocated", counter.allocated);
    visitor.add(name + ".current", counter.current);
    visitor.add(name + ".freed", counter.freed);
    visitor.add(name + ".peak", counter.peak);
}
template <typename Visitor, typename Name>
void visit_parts(Visitor &visitor, const Name &name, const PooledCounter &counter) {
    visitor.add(name + ".all", counter.all);
    visitor.add(name + ".large_pool", counter.large);
    visitor.add(name + ".small_pool", counter.small);
}

// Makes the keys, in the order of the visits.
class KeyMaker {
public:
    void add(const std::string &name, std::int64_t) { keys.push_back(interned(name.c_str())); }
    template <typename Counters> void add(const std::string &name, const Counters &counters) {
        visit_parts(*this, name, counters);
    }

    std::vector<nb::object> keys;
};

// Takes the place of a name if the position of the key is enough to find the key.
struct NoName {
    NoName operator+(const char *) const { return {}; }
};

// Lists the numbers in the order of the visits.
class NumberLister {
public:
    explicit NumberLister(std::int64_t *numbers) : next_(numbers) {}

    template <typename Name> void add(const Name &, std::int64_t number) { *next_++ = number; }
    template <typename Name, typename Counters> void add(const Name &, const Counters &counters) {
        visit_parts(*this, NoName{}, counters);
    }

private:
    std::int64_t *next_;
};

struct Keys {
    std::vector<nb::object> all;
    std::size_t before_pools; // how many keys are before those of private pools
};

const Keys &keys() {
    static Published<const Keys> made;
    return made.get([] {
        KeyMaker maker;
        visit(Statistics{}, maker);
        const auto behind = std::find_if(maker.keys.begin(), maker.keys.end(), [](const nb::object &key) {
            return std::string(nb::cast<const char *>(key)) > of_pools;
        });
        const auto before = static_cast<std::size_t>(behind - maker.keys.begin());
        return new Keys{std::move(maker.keys), before};
    });
}

void set(const nb::dict &dict, PyObject *key, std::int64_t number) {
    PyObject *const value = PyLong_FromLongLong(number);
    const bool failed = value == nullptr || PyDict_SetItem(dict.ptr(), key, value) != 0;
    Py_XDECREF(value);
    if (failed)
        nb::raise_python_error();
}

// Adds numbers with their names to a dictionary, in the order of the visits.
class DictFiller {
public:
    explicit DictFiller(nb::dict &dict) : dict_(dict) {}

    void add(const std::string &name, std::int64_t number) {
        set(dict_, checked(PyUnicode_FromStringAndSize(name.data(), static_cast<Py_ssize_t>(name.size()))).ptr(),
            number);
    }
    template <typename Counters> void add(const std::string &name, const Counters &counters) {
        visit_parts(*this, name, counters);
    }

private:
    nb::dict &dict_;
};

void add_pools(nb::dict &dict, const std::map<PoolId, PooledCounter> &pools) {
    std::map<std::string, const PooledCounter *> by_name; // the order of texts is not the order of numbers
    for (const auto &[id, reserved] : pools)
        by_name.emplace(of_pools + std::to_string(id.first) + "_" + std::to_string(id.second), &reserved);
    DictFiller filler(dict);
    for (const auto &[name, reserved] : by_name)
        filler.add(name, *reserved);
}

} // namespace

nb::dict dict_of(const HostStatistics &statistics) {
    nb::dict dict = new_dict();
    const auto set = [&](const char *name, const char *figure, std::int64_t value) {
        dict[(std::string(name) + "." + figure).c_str()] = value;
    };
    const auto count = [&](const char *name, const Counter &counter) {
        set(name, "allocated", counter.allocated);
        set(name, "current", counter.current);
        set(name, "freed", counter.freed);
        set(name, "peak", counter.peak);
    };
    const auto time = [&](const char *name, const Durations &durations) {
        set(name, "avg", durations.average());
        set(name, "count", durations.count);
        set(name, "max", durations.max);
        set(name, "min", durations.min);
        set(name, "total", durations.total);
    };
    count("active_bytes", statistics.active_bytes);
    count("active_requests", statistics.active_requests);
    count("allocated_bytes", statistics.allocated_bytes);
    count("allocations", statistics.allocations);
    time("host_alloc_time", statistics.host_alloc_time);
    time("host_free_time", statistics.host_free_time);
    dict["num_host_alloc"] = statistics.num_host_alloc;
    dict["num_host_free"] = statistics.num_host_free;
    return dict;
}

nb::dict dict_of(const Statistics &statistics, const std::map<PoolId, PooledCounter> &pools) {
    static_assert(std::is_trivially_copyable_v<Statistics>);
    std::array<std::int64_t, sizeof(Statistics) / sizeof(std::int64_t)> numbers; // all members are such numbers
    NumberLister lister(numbers.data());
    visit(statistics, lister);
    nb::dict dict = new_dict();
    const auto &[all, before_pools] = keys();
    for (std::size_t i = 0; i < all.size(); ++i) {
        if (i == before_pools)
            add_pools(dict, pools);
        set(dict, all[i].ptr(), numbers[i]);
    }
    return dict;
}

} // namespace tcuda
