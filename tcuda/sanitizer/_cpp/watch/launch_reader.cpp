#include "sanitizer/_cpp/watch/launch_reader.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "sanitizer/_cpp/kernel_uses/kernel_use.hpp"
#include "sanitizer/_cpp/order/address_hash.hpp"
#include "sanitizer/_cpp/watch/call_notes.hpp"
#include "sanitizer/_cpp/watch/known_kernel.hpp"
#include "sanitizer/_cpp/watch/launch_walk.hpp"
#include "sanitizer/_cpp/watch/parameter_block.hpp"

namespace tcuda::watch {
namespace {

using kernel_uses::Kind;
using races::AccessKind;
using races::Dimension;
using races::RaceDetector;
using races::Region;
using LiveRange = RaceDetector::LiveRange;

constexpr int most_dimensions = 64; // more than any array has

// No device and no driver maps memory below the first address or from the second address on.
constexpr Address least_address = Address(1) << 16, behind_addresses = Address(1) << 57;
bool may_be_address(Address value) { return value >= least_address && value < behind_addresses; }

bool has_known_kinds(const CallNotes &notes) {
    return std::any_of(notes.memory.begin(), notes.memory.end(),
                       [](const NotedMemory &memory) { return memory.kind_known; });
}

bool holds(const Region &region, Address address) {
    if (address < region.begin() || address >= region.end())
        return false;
    return region.contiguous() || overlap_of(region, address, address + 1).has_value();
}

bool is_of(const NotedMemory &memory, Address address) {
    return memory.region.address() == address || (memory.extent_known && holds(memory.region, address));
}

// The noted memory that begins at the address, or that holds the address; null if there is none. Inner notes come
// first.
const NotedMemory *memory_at(const CallNotes *notes, Address address) {
    for (; notes != nullptr; notes = notes->outer) {
        for (const NotedMemory &memory : notes->memory)
            if (memory.region.address() == address)
                return &memory;
        for (const NotedMemory &memory : notes->memory)
            if (memory.extent_known && holds(memory.region, address))
                return &memory;
    }
    return nullptr;
}

// One reading of a launch. Each thread has one, whose memory is used again for the next launch.
class Reading {
public:
    NamedOperation read(const Launch &launch, RaceDetector &detector, KernelTable &kernels,
                        const KernelQuestions &questions) {
        count_ = 0;
        detector_ = &detector;
        const CallNotes *const notes = innermost_notes();
        const CallNotes *exclusive = nullptr, *library = nullptr;
        std::string_view name;
        for (const CallNotes *scope = notes; scope != nullptr; scope = scope->outer) {
            if (exclusive == nullptr && scope->exclusive)
                exclusive = scope;
            if (library == nullptr && has_known_kinds(*scope))
                library = scope;
            if (name.empty())
                name = scope->name;
        }
        Met &met = find(launch, kernels, questions);
        kernel_ = met.kernel.get();
        const ParameterBlock block(launch);
        if (exclusive != nullptr)
            read_notes(*exclusive, block, true);
        else if (library != nullptr && kernel_->source != UseSource::description)
            read_notes(*library, block, false);
        else
            read_kernel(notes, block);
        if (exclusive == nullptr)
            add_walk(met, launch, block);
        if (name.empty())
            name = kernel_->name.empty() ? std::string_view("kernel") : std::string_view(kernel_->name);
        return {name, {uses_.data(), count_}};
    }

private:
    // A kernel that was launched lately. A program launches few kernels again and again.
    struct Met {
        std::uint64_t version = 0; // of the table
        libcuda::Function function{};
        std::shared_ptr<const KnownKernel> kernel;
        // The last launches. Accesses of launches with the same sizes and parameters use the same bytes.
        static constexpr std::size_t kept = 4;
        std::array<std::shared_ptr<LaunchWalk>, kept> walks;
        std::size_t next = 0;
        const RaceDetector *detector = nullptr; // whose mutex guards the walks
    };
    static constexpr unsigned met_bits = 5;

    Met &find(const Launch &launch, KernelTable &kernels, const KernelQuestions &questions) {
        const std::uint64_t version = kernels.version();
        Met &met = met_[races::place_of<met_bits>(launch.function)];
        if (met.version != version || met.function != launch.function || !met.kernel->has_name(launch.name)) {
            met = Met();
            met.version = version;
            met.function = launch.function;
            met.kernel = kernels.find(launch.function, launch.name, questions);
        }
        return met;
    }

    // The walk of the launch for each of its possible uses. The walk begins when a race is found.
    void add_walk(Met &met, const Launch &launch, const ParameterBlock &block) {
        const auto is_possible = [](const RaceDetector::NamedUse &named) { return named.use.possible; };
        const auto end = uses_.begin() + static_cast<std::ptrdiff_t>(count_);
        if (kernel_->program == nullptr || !launch.sizes.are_known() || std::none_of(uses_.begin(), end, is_possible) ||
            !read_parameters(block))
            return;
        if (met.detector != detector_) {
            met.walks.fill(nullptr);
            met.detector = detector_;
        }
        const auto is_same = [&](const std::shared_ptr<LaunchWalk> &walk) {
            return walk != nullptr && walk->is_of(kernel_->program.get(), launch.sizes, parameters_);
        };
        auto walk = std::find_if(met.walks.begin(), met.walks.end(), is_same);
        if (walk == met.walks.end()) {
            walk = met.walks.begin() + static_cast<std::ptrdiff_t>(met.next++ % Met::kept);
            *walk = std::make_shared<LaunchWalk>(kernel_->program, launch.sizes, parameters_);
        }
        for (auto named = uses_.begin(); named != end; ++named)
            if (named->use.possible)
                named->use.sure = *walk;
    }

    // False if the driver does not tell all parameters.
    bool read_parameters(const ParameterBlock &block) {
        const kernel_uses::Program &program = *kernel_->program;
        parameters_.assign(program.parameter_bytes, 0);
        for (std::size_t number = 0; number < program.parameters.size(); ++number) {
            const kernel_uses::Parameter &parameter = program.parameters[number];
            if (!block.read({parameter.offset, number, 0}, 0, parameters_.data() + parameter.offset, parameter.size))
                return false;
        }
        return true;
    }

    // A word of the parameters, which may be a pointer.
    struct Word {
        const KnownKernel::Pointer *pointer; // null for a word of which nothing is known
        std::size_t use;                     // the place of the use that was made for the word
    };
    static constexpr std::size_t no_use = ~std::size_t(0);

    void read_kernel(const CallNotes *notes, const ParameterBlock &block) {
        read_words(block, !kernel_->complete, false);
        find_live();
        for (std::size_t place = 0; place < words_.size(); ++place) {
            if (live_[place].begin == live_[place].end)
                continue;
            if (words_[place].pointer != nullptr)
                use_pointer(place, notes, block);
            else
                use_word(place, notes);
        }
    }

    void read_words(const ParameterBlock &block, bool others, bool unused) {
        words_.clear();
        addresses_.clear();
        for (const KnownKernel::Pointer &pointer : kernel_->pointers)
            if (pointer.kind != Kind::none || unused)
                read_word(block, pointer.place, &pointer);
        if (!others)
            return;
        for (const ParameterBytes &place : kernel_->others)
            read_word(block, place, nullptr);
        if (kernel_->layout_known || !block.is_block())
            return;
        for (std::size_t offset = 0; offset + word <= block.size(); offset += word) {
            const auto is_here = [offset](const KnownKernel::Pointer &known) { return known.place.offset == offset; };
            if (std::none_of(kernel_->pointers.begin(), kernel_->pointers.end(), is_here))
                read_word(block, {offset, ParameterBytes::unknown, 0}, nullptr);
        }
    }

    void read_word(const ParameterBlock &block, const ParameterBytes &place, const KnownKernel::Pointer *pointer) {
        Address value;
        if (!block.read(place, 0, &value, word) || !may_be_address(value))
            return;
        words_.push_back({pointer, no_use});
        addresses_.push_back(value);
    }

    void find_live() {
        if (live_.size() < addresses_.size())
            live_.resize(addresses_.size());
        if (!addresses_.empty())
            detector_->find_live(addresses_.data(), addresses_.size(), live_.data());
    }

    void use_pointer(std::size_t place, const CallNotes *notes, const ParameterBlock &block) {
        const KnownKernel::Pointer &pointer = *words_[place].pointer;
        const auto kind = static_cast<AccessKind>(pointer.kind);
        if (pointer.dimensions >= 0) {
            switch (read_array(place, block)) {
            case Extent::none:
                return;
            case Extent::exact:
                next(kind, pointer.possible, pointer.label).use.region.set(addresses_[place], pointer.itemsize, shape_);
                return;
            case Extent::unknown:
                break;
            }
        }
        const NotedMemory *const memory = memory_at(notes, addresses_[place]);
        const std::string_view label = memory != nullptr && pointer.label.empty() ? memory->label : pointer.label;
        // The code of a kernel does not tell whether the kernel uses the whole array.
        const bool possible = pointer.possible || kernel_->source != UseSource::description;
        if (memory != nullptr && memory->extent_known)
            next(kind, possible, label).use.region = memory->region;
        else
            use_rest(addresses_[place], live_[place], kind, label);
    }

    enum class Extent { none, exact, unknown };

    // Reads the shape of the array that begins at a pointer. The extent is unknown if the array does not lie in the
    // allocation.
    Extent read_array(std::size_t place, const ParameterBlock &block) {
        const KnownKernel::Pointer &pointer = *words_[place].pointer;
        const auto dimensions = static_cast<std::size_t>(pointer.dimensions);
        if (pointer.dimensions > most_dimensions)
            return Extent::unknown;
        std::int64_t numbers[1 + 2 * most_dimensions]; // the size, the shape and the strides
        if (!block.read(pointer.place, word, numbers, sizeof numbers[0] * (1 + 2 * dimensions)))
            return Extent::unknown;
        shape_.clear();
        __int128 below = 0, above = static_cast<__int128>(pointer.itemsize);
        bool empty = pointer.itemsize == 0;
        for (std::size_t axis = 0; axis < dimensions; ++axis) {
            const Dimension dimension{numbers[1 + axis], numbers[1 + dimensions + axis]};
            if (dimension.count < 0)
                return Extent::unknown;
            empty = empty || dimension.count == 0;
            const __int128 reach = static_cast<__int128>(dimension.stride) * (dimension.count - 1);
            (reach < 0 ? below : above) += reach;
            shape_.push_back(dimension);
        }
        if (empty)
            return Extent::none;
        const Address address = addresses_[place];
        const LiveRange &live = live_[place];
        const bool inside =
            -below <= static_cast<__int128>(address - live.begin) && above <= static_cast<__int128>(live.end - address);
        return inside ? Extent::exact : Extent::unknown;
    }

    // A word of which nothing is known. Several such words may point into one allocation.
    void use_word(std::size_t place, const CallNotes *notes) {
        const NotedMemory *const memory = memory_at(notes, addresses_[place]);
        if (memory != nullptr && memory->extent_known) {
            next(AccessKind::both, true, memory->label).use.region = memory->region;
            return;
        }
        for (std::size_t other = 0; other < place; ++other) {
            if (words_[other].use == no_use || live_[other].begin != live_[place].begin)
                continue;
            if (addresses_[place] >= addresses_[other])
                return;
            set_rest(uses_[words_[other].use], addresses_[place], live_[place]);
            std::swap(addresses_[place], addresses_[other]); // later words are compared with the first address
            return;
        }
        words_[place].use = count_;
        use_rest(addresses_[place], live_[place], AccessKind::both,
                 memory == nullptr ? std::string_view() : std::string_view(memory->label));
    }

    void use_rest(Address address, const LiveRange &live, AccessKind kind, std::string_view label) {
        set_rest(next(kind, true, label), address, live);
    }

    void set_rest(RaceDetector::NamedUse &named, Address address, const LiveRange &live) {
        shape_.clear();
        named.use.region.set(address, live.end - address, shape_);
    }

    // The memory of notes whose kinds are known, and of an annotation.
    void read_notes(const CallNotes &notes, const ParameterBlock &block, bool exclusive) {
        read_words(block, true, true);
        find_live_notes(notes);
        for (std::size_t place = 0; place < notes.memory.size(); ++place) {
            const NotedMemory &memory = notes.memory[place];
            const LiveRange &live = noted_live_[place];
            // The function of a library may have received addresses of the host: a factor, or the place of a result.
            const bool is_live = live.contains(memory.region.address());
            if (!is_live && (!exclusive || !memory.extent_known))
                continue;
            Kind kind = memory.kind;
            bool seen = false, possible = false;
            if (memory.kind_known) {
                const auto points_here = [&](Address address) { return is_of(memory, address); };
                seen = exclusive || std::any_of(addresses_.begin(), addresses_.end(), points_here);
                possible = !seen;
            } else {
                kind = kind_of(memory, &possible);
            }
            if (kind == Kind::none)
                continue;
            const auto access = static_cast<AccessKind>(kind);
            if (memory.extent_known) {
                if (!memory.region.empty())
                    next(access, possible, memory.label).use.region = memory.region;
                continue;
            }
            use_rest(memory.region.address(), live, access, memory.label);
        }
    }

    void find_live_notes(const CallNotes &notes) {
        noted_.clear();
        for (const NotedMemory &memory : notes.memory)
            noted_.push_back(memory.region.address());
        if (noted_live_.size() < noted_.size())
            noted_live_.resize(noted_.size());
        if (!noted_.empty())
            detector_->find_live(noted_.data(), noted_.size(), noted_live_.data());
    }

    // What the kernel itself does with the memory.
    Kind kind_of(const NotedMemory &memory, bool *possible) const {
        Kind kind = Kind::none;
        bool known = false;
        for (std::size_t place = 0; place < words_.size(); ++place) {
            const KnownKernel::Pointer *const pointer = words_[place].pointer;
            if (pointer == nullptr || !is_of(memory, addresses_[place]))
                continue;
            kind = kind | pointer->kind;
            *possible = *possible || pointer->possible;
            known = true;
        }
        if (known)
            return kind;
        *possible = true;
        return Kind::both;
    }

    RaceDetector::NamedUse &next(AccessKind kind, bool possible, std::string_view label) {
        if (count_ == uses_.size())
            uses_.emplace_back();
        RaceDetector::NamedUse &named = uses_[count_++];
        named.use.kind = kind;
        named.use.possible = possible;
        named.use.sure.reset();
        named.label = label;
        return named;
    }

    RaceDetector *detector_ = nullptr;
    std::array<Met, std::size_t(1) << met_bits> met_;
    const KnownKernel *kernel_ = nullptr; // one of `met_`; has the labels
    std::vector<RaceDetector::NamedUse> uses_;
    std::size_t count_ = 0;
    std::vector<Word> words_;
    std::vector<Address> addresses_; // the values of the words
    std::vector<LiveRange> live_;    // the memory around them
    std::vector<Address> noted_;     // the addresses of the notes
    std::vector<LiveRange> noted_live_;
    std::vector<Dimension> shape_;
    std::vector<unsigned char> parameters_; // the parameter block
};

bool looks_like_ptx(const char *text) {
    constexpr std::string_view blanks = " \t\r\n";
    while (*text != '\0' && blanks.find(*text) != std::string_view::npos)
        ++text;
    return std::strncmp(text, "//", 2) == 0 || std::strncmp(text, "/*", 2) == 0 ||
           std::strncmp(text, ".version", 8) == 0;
}

} // namespace

NamedOperation LaunchReader::uses_of(const Launch &launch) {
    if (launch.name != nullptr && !may_use_memory())
        return {launch.name, {nullptr, 0}};
    static thread_local Reading reading;
    return reading.read(launch, detector_, kernels_, questions_);
}

// An annotation may have memory that the detector does not know.
bool LaunchReader::may_use_memory() const { return detector_.knows_memory() || innermost_notes() != nullptr; }

void LaunchReader::module_loaded(Module module, const void *image) {
    kernels_.forget(module); // a module that was here before may be gone
    if (const auto text = static_cast<const char *>(image); text != nullptr && looks_like_ptx(text))
        kernels_.add_ptx(module, text);
}

} // namespace tcuda::watch
