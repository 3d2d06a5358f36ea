// The memory that handles, plans and descriptors of the libraries lead to.
#pragma once

#include <cstdint>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "sanitizer/_cpp/kernel_uses/kernel_use.hpp"
#include "sanitizer/_cpp/order/region.hpp"

namespace tcuda::library_calls {

// Memory of an object.
struct HeldMemory {
    enum class Part : std::uint8_t { values, structure, workspace };
    Part part = Part::workspace;
    races::Region region; // if `extent_known` is false, only the address counts
    bool extent_known = false;
    std::string label;
};

// The sizes of a plan of cuFFT, in bytes.
struct PlannedTransform {
    std::size_t input_item = 0, output_item = 0;
    std::vector<races::Dimension> input, output;
    std::size_t work_area = 0; // if the plan does not allocate the area itself
    bool into_input = false;   // whether the transform may write into its input
};

// An object of a library.
struct KnownObject {
    std::vector<HeldMemory> memory;
    bool planned = false;
    PlannedTransform transform;
};

// The objects that have been made, or have received pointers, since the interception began. The mutex is a leaf.
class KnownMemory {
public:
    static KnownMemory &instance();

    // Calls `use(object)` if the object is known.
    template <class Use> void read(std::uint64_t object, const Use &use) {
        const std::lock_guard lock(mutex_);
        if (const auto found = objects_.find(object); found != objects_.end())
            use(const_cast<const KnownObject &>(found->second));
    }
    // Calls `change(object)`; an unknown object is made first.
    template <class Change> void change(std::uint64_t object, const Change &change) {
        const std::lock_guard lock(mutex_);
        change(objects_[object]);
    }
    void forget(std::uint64_t object);
    void clear();

private:
    std::mutex mutex_;
    std::unordered_map<std::uint64_t, KnownObject> objects_;
};

} // namespace tcuda::library_calls
