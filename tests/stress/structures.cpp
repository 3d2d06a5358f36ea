// The data structures of the core, each compared with a structure of the standard library after every step.
//
//     structures [steps] [seed]
//
// The program prints the first difference and ends with the status 1.
#include <unistd.h>

#include <algorithm>
#include <cstdarg>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <iterator>
#include <list>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <unordered_map>
#include <utility>
#include <vector>

#include "emulation/_cpp/memory/emulated_memory.hpp"
#include "memory/allocator/address_hash.hpp"
#include "memory/allocator/address_map.hpp"
#include "memory/allocator/block.hpp"
#include "memory/allocator/free_blocks.hpp"
#include "memory/allocator/linked_list.hpp"
#include "memory/allocator/stream_lives.hpp"
#include "memory/allocator/work.hpp"

namespace {

using namespace tcuda;

std::mt19937_64 chance;

std::size_t below(std::size_t bound) { return chance() % bound; }
bool one_in(std::size_t chances) { return below(chances) == 0; }

[[noreturn]] __attribute__((format(printf, 1, 2))) void fail(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    std::printf("structures: ");
    std::vprintf(format, arguments);
    va_end(arguments);
    std::printf("\n");
    std::fflush(stdout);
    std::_Exit(1);
}

void expect(bool holds, const char *what) {
    if (!holds)
        fail("%s", what);
}

// AddressMap, with the addresses of blocks: multiples of 512, many of them adjacent.
void check_address_map(std::size_t steps) {
    AddressMap<int> map;
    std::unordered_map<std::uintptr_t, int *> model;
    std::vector<int> values(64);
    const auto key = [] { return (one_in(2) ? 0x7F0000000000 : 0x400) + 512 * (1 + below(3000)); };
    bool growing = true;
    for (std::size_t step = 0; step < steps; ++step) {
        if (one_in(2000))
            growing = !growing;
        const std::uintptr_t at = key();
        const auto known = model.find(at);
        int *expected = known == model.end() ? nullptr : known->second;
        if (map.find(at) != expected)
            fail("AddressMap finds another value at %#zx", static_cast<std::size_t>(at));
        if (below(10) < (growing ? 7 : 3)) {
            int *value = &values[below(values.size())];
            if (one_in(2))
                map.reserve_one();
            map.insert(at, value);
            model[at] = value;
        } else {
            if (map.erase(at) != expected)
                fail("AddressMap erases another value at %#zx", static_cast<std::size_t>(at));
            model.erase(at);
        }
        expect(map.size() == model.size(), "AddressMap has another size");
        if (one_in(5000)) {
            for (const auto &[address, value] : model)
                if (map.find(address) != value)
                    fail("AddressMap has lost %#zx", static_cast<std::size_t>(address));
            std::map<int *, std::size_t> seen, there;
            map.each([&](int *value) { ++seen[value]; });
            for (const auto &[address, value] : model)
                ++there[value];
            expect(seen == there, "AddressMap visits other values");
        }
    }
}

// BlockTree in the order of addresses, as the tree of the holes of a segment.
void check_block_tree(std::size_t steps) {
    BlockTree<Block, ByAddress> tree;
    std::set<Block *, ByAddress> model;
    std::vector<Block> blocks(400);
    for (std::size_t i = 0; i < blocks.size(); ++i)
        blocks[i].address = (std::uintptr_t(1) << 40) + (3 * i + i % 3) * EmulatedMemory::page;
    std::size_t most = blocks.size();
    for (std::size_t step = 0; step < steps; ++step) {
        if (one_in(2000))
            most = one_in(2) ? blocks.size() : 1 + below(20);
        Block *block = &blocks[below(most)];
        if (model.erase(block) != 0) {
            tree.erase(block);
        } else {
            model.insert(block);
            tree.insert(block);
        }
        expect(tree.empty() == model.empty(), "BlockTree is wrong about being empty");
        const Block *wanted = &blocks[below(blocks.size())];
        const auto expected = model.lower_bound(const_cast<Block *>(wanted));
        const auto is_enough = [&](const Block *one) { return one->address >= wanted->address; };
        const Block *least = expected == model.end() ? nullptr : *expected;
        expect(tree.first(is_enough) == least && tree.find(is_enough) == least, "BlockTree finds another block");
        if (one_in(1000)) {
            std::vector<Block *> seen;
            tree.each([&](Block *one) { seen.push_back(one); });
            expect(std::equal(seen.begin(), seen.end(), model.begin(), model.end()), "BlockTree visits other blocks");
        }
    }
}

// The order of addresses, which counts its comparisons.
struct CountedOrder {
    static inline std::size_t comparisons = 0;
    bool operator()(const Block *left, const Block *right) const {
        ++comparisons;
        return ByAddress{}(left, right);
    }
};

// Blocks of one size side by side have evenly spaced addresses. Whatever the size, the places of these addresses in an
// AddressMap must be spread as random places are, and a BlockTree must stay flat.
void check_even_addresses() {
    constexpr std::size_t count = 20'000, places = std::size_t(1) << 16;
    std::vector<Block> blocks(count);
    for (std::size_t size = 512; size <= std::size_t(4) << 20; size += size < 1 << 20 ? 31 * 512 : 512 * 1023) {
        std::vector<std::size_t> homes(places);
        for (std::size_t i = 0; i < count; ++i) {
            blocks[i].address = 0x7F1234000000 + i * size;
            ++homes[hash_of(blocks[i].address) >> 48];
        }
        std::size_t pushed = 0, farthest = 0; // entries that linear probing pushes beyond their home
        for (std::size_t place = 0; place < 2 * places; ++place) {
            pushed += homes[place % places];
            pushed -= pushed != 0;
            farthest = std::max(farthest, pushed);
        }
        if (farthest > 20)
            fail("a lookup among addresses %zu bytes apart visits %zu places of an AddressMap", size, farthest);
        BlockTree<Block, CountedOrder> tree;
        for (Block &block : blocks)
            tree.insert(&block);
        CountedOrder::comparisons = 0;
        for (Block &block : blocks)
            tree.erase(&block);
        if (CountedOrder::comparisons > 40 * count)
            fail("a BlockTree of addresses %zu bytes apart has a depth of %zu", size,
                 CountedOrder::comparisons / count);
    }
}

// StreamLives: a tie knows the end of its own stream, also if another stream has the same handle by then.
void check_stream_lives(std::size_t steps) {
    struct Named {
        Stream stream;
        std::shared_ptr<Work> end;
        StreamTie tie;
    };
    StreamLives lives;
    std::list<Named> model;
    for (std::size_t step = 0; step < steps; ++step) {
        const Stream stream = 16 * below(20);
        if (one_in(2)) {
            model.push_back({stream, nullptr, StreamTie(lives, lives.of(stream))});
        } else if (one_in(10)) {
            const auto end = std::make_shared<Work>();
            if (StreamLife *life = lives.find(stream))
                lives.end(*life, end);
            for (Named &named : model)
                if (named.stream == stream && named.end == nullptr)
                    named.end = end;
        } else if (!model.empty()) {
            const std::size_t newest = std::min(model.size(), std::size_t(9));
            model.erase(std::prev(model.end(), static_cast<std::ptrdiff_t>(1 + below(newest))));
        }
        if (model.size() > 100)
            model.erase(model.begin(), std::next(model.begin(), 60));
        bool is_named = false;
        for (const Named &named : model) {
            is_named = is_named || (named.stream == stream && named.end == nullptr);
            expect(named.tie.last_work() == named.end, "a tie of StreamLives has the last work of another stream");
        }
        expect((lives.find(stream) != nullptr) == is_named, "StreamLives has another number of streams");
    }
}

struct Listed {
    Links<Listed> links;
};

// LinkedList: a member is in the list at most once, and may leave the list while each() visits the member.
void check_linked_list(std::size_t steps) {
    LinkedList<Listed, &Listed::links> list;
    std::vector<Listed> members(30);
    std::set<Listed *> model;
    for (std::size_t step = 0; step < steps; ++step) {
        Listed &member = members[below(members.size())];
        if (one_in(2)) {
            list.add(member);
            model.insert(&member);
        } else if (!one_in(20)) {
            list.remove(member);
            model.erase(&member);
        } else {
            std::set<Listed *> seen;
            const auto expected = model;
            list.each([&](Listed &visited) {
                expect(seen.insert(&visited).second, "LinkedList visits a member twice");
                if (one_in(3)) {
                    list.remove(visited);
                    model.erase(&visited);
                }
            });
            expect(seen == expected, "LinkedList visits other members");
        }
    }
}

// FreeBlocks: the best fit is the block with the lowest address among the blocks of the smallest size that fits.
void check_free_blocks(std::size_t steps) {
    constexpr std::size_t large = std::size_t(2) << 20;
    const auto free = std::make_unique<FreeBlocks>();
    std::map<std::pair<std::size_t, std::uintptr_t>, Block *> model; // by size and address
    const auto key = [](const Block *block) { return std::pair(block->size, block->address); };
    std::vector<std::unique_ptr<Block>> blocks;
    for (std::size_t i = 0; i < 600; ++i) {
        blocks.push_back(std::make_unique<Block>());
        blocks.back()->address = (i + 1) << 30;
    }
    const auto size = [] {
        const std::size_t units = one_in(3) ? below(70) : one_in(4) ? 4000 + below(200) : below(9000);
        return unit * (1 + units);
    };
    std::size_t bytes = 0;
    std::size_t most = blocks.size();
    for (std::size_t step = 0; step < steps; ++step) {
        if (one_in(3000))
            most = one_in(3) ? blocks.size() : 1 + below(20);
        Block *block = blocks[below(most)].get();
        if (model.erase(key(block)) != 0) {
            free->erase(block);
            bytes -= block->size;
        } else {
            block->size = size();
            model.emplace(key(block), block);
            free->insert(block);
            bytes += block->size;
        }
        expect(free->bytes() == bytes, "FreeBlocks has another number of bytes");
        const std::size_t wanted = size();
        const Block *found = free->best_fit(wanted);
        const auto best = model.lower_bound({wanted, 0});
        if ((found == nullptr) != (best == model.end()))
            fail("FreeBlocks finds %s for %zu bytes", found == nullptr ? "nothing" : "something", wanted);
        if (found != nullptr && found != best->second)
            fail("FreeBlocks finds %zu bytes at %#zx for %zu bytes", found->size,
                 static_cast<std::size_t>(found->address), wanted);
        if (found != nullptr) {
            const auto next = std::next(best);
            expect(free->next_fit(found) == (next == model.end() ? nullptr : next->second),
                   "FreeBlocks finds another block behind the best fit");
        }
        if (one_in(1000)) {
            std::size_t seen = 0, seen_large = 0;
            free->each([&](Block *one) { seen += model.count(key(one)); });
            expect(seen == model.size(), "FreeBlocks visits other blocks");
            free->each_large([&](Block *one) { seen_large += model.count(key(one)); });
            const auto least = model.lower_bound({large, 0});
            expect(seen_large == static_cast<std::size_t>(std::distance(least, model.end())),
                   "FreeBlocks visits other large blocks");
            const Block *largest = free->find_large([&](const Block *one) { return one == model.rbegin()->second; });
            expect(model.empty() || largest == (seen_large == 0 ? nullptr : model.rbegin()->second),
                   "FreeBlocks finds another large block");
        }
    }
}

// Reads a byte with write() into a pipe, so that an unreadable address is an error (-1) and not a crash.
class Probe {
public:
    Probe() { expect(pipe(ends_) == 0, "no pipe"); }
    ~Probe() {
        close(ends_[0]);
        close(ends_[1]);
    }
    int operator()(std::uintptr_t address) {
        unsigned char byte;
        if (write(ends_[1], reinterpret_cast<const void *>(address), 1) != 1)
            return -1;
        return read(ends_[0], &byte, 1) == 1 ? byte : -1;
    }

private:
    int ends_[2];
};

// EmulatedMemory: every call is tried with right and with wrong arguments.
void check_host_memory(std::size_t steps) {
    constexpr std::size_t page = EmulatedMemory::page, limit = 100 * page;
    const auto memory = std::make_unique<EmulatedMemory>(limit);
    Probe probe;
    // Physical memory: its own name and its mappings keep the charge, imports keep the contents.
    struct Contents {
        int mark;
        bool written = false;
        int expected() const { return written ? mark : 0; }
    };
    struct Piece {
        std::size_t pages;
        std::shared_ptr<Contents> contents;
        std::shared_ptr<void> charge; // counts as used while it lives; null for imports
    };
    std::size_t used = 0;
    int marks = 0;
    std::map<std::uintptr_t, std::size_t> reservations; // address -> pages
    std::map<std::uintptr_t, Piece> mappings;
    std::map<std::uint64_t, Piece> physical;      // by name
    std::map<std::uintptr_t, std::size_t> blocks; // of allocate(): address -> size
    const auto rounded = [](std::size_t size) { return (size + unit - 1) / unit * unit; };
    const auto any_of = [](const auto &entries) {
        return std::next(entries.begin(), static_cast<std::ptrdiff_t>(below(entries.size())));
    };
    const auto mapping_at = [&](std::uintptr_t address) {
        auto found = mappings.upper_bound(address);
        if (found == mappings.begin())
            return mappings.end();
        --found;
        return address - found->first < found->second.pages * page ? found : mappings.end();
    };

    for (std::size_t step = 0; step < steps; ++step) {
        switch (below(10)) {
        case 0: { // reserve
            if (reservations.size() == 6)
                break;
            const std::size_t pages = 1 + below(40);
            std::uintptr_t address = 0;
            expect(memory->reserve(pages * page, &address), "EmulatedMemory reserves nothing");
            expect(address % page == 0, "EmulatedMemory reserves an unaligned address");
            const auto after = reservations.lower_bound(address);
            const auto before = after == reservations.begin() ? after : std::prev(after);
            expect(after == reservations.end() || address + pages * page <= after->first, "reservations overlap");
            expect(after == before || before->first + before->second * page <= address, "reservations overlap");
            expect(probe(address) == -1 && probe(address + pages * page - 1) == -1, "reserved memory can be read");
            reservations.emplace(address, pages);
            expect(!memory->reserve(0, &address), "EmulatedMemory reserves 0 bytes");
            break;
        }
        case 1: { // unreserve
            if (reservations.empty())
                break;
            const auto [address, pages] = *any_of(reservations);
            const std::size_t asked = one_in(4) ? 1 + below(40) : pages;
            const std::uintptr_t at = one_in(6) ? address + page : address;
            const auto mapped = mappings.lower_bound(address);
            const bool right = at == address && asked == pages &&
                               (mapped == mappings.end() || mapped->first >= address + pages * page);
            const bool elsewhere = at != address && reservations.count(at) != 0;
            if (elsewhere)
                break;
            expect(memory->unreserve(at, asked * page) == right, "unreserve() returns the wrong result");
            if (right)
                reservations.erase(address);
            break;
        }
        case 2: { // create
            const std::size_t pages = below(one_in(4) ? 30 : 6);
            const std::size_t size = pages * page + (one_in(8) ? 512 : 0);
            std::uint64_t name = 0;
            const bool right = size != 0 && size % page == 0 && size <= limit - used;
            expect(memory->create(size, &name) == right, "create() returns the wrong result");
            if (right) {
                std::shared_ptr<void> charge(nullptr, [&used, size](void *) { used -= size; });
                const auto contents = std::make_shared<Contents>(Contents{1 + marks++ % 255});
                const Piece piece{pages, contents, std::move(charge)};
                expect(physical.emplace(name, piece).second, "create() gives the same name twice");
                used += size;
            }
            break;
        }
        case 3: { // destroy
            if (physical.empty())
                break;
            const std::uint64_t name = one_in(8) ? 1u << 30 : any_of(physical)->first;
            const auto known = physical.find(name);
            expect(memory->destroy(name) == (known != physical.end()), "destroy() returns the wrong result");
            if (known != physical.end())
                physical.erase(known);
            break;
        }
        case 4:
        case 5: { // map
            if (physical.empty() || reservations.empty())
                break;
            const auto [name, piece] = *any_of(physical);
            const std::size_t pages = piece.pages;
            const auto [start, reserved] = *any_of(reservations);
            std::uintptr_t at = start + below(reserved + 1) * page + (one_in(10) ? 512 : 0);
            if (const auto before = mapping_at(at); before != mappings.end() && !one_in(4))
                at = before->first + before->second.pages * page; // directly behind the mapping
            const std::size_t asked = one_in(6) ? 1 + below(30) : pages;
            if (at >= start + reserved * page)
                break; // the address may lie in another reservation
            bool right = asked == pages && at % page == 0 && at + asked * page <= start + reserved * page;
            for (std::size_t i = 0; i < asked && right; ++i)
                right = mapping_at(at + i * page) == mappings.end();
            expect(memory->map(at, asked * page, name) == right, "map() returns the wrong result");
            if (right) {
                mappings.emplace(at, piece);
                for (const std::uintptr_t place : {at, at + asked * page - 1}) {
                    expect(probe(place) == piece.contents->expected(), "physical memory has lost its contents");
                    *reinterpret_cast<unsigned char *>(place) = static_cast<unsigned char>(piece.contents->mark);
                }
                piece.contents->written = true;
            }
            break;
        }
        case 6: { // unmap
            if (mappings.empty())
                break;
            const auto found = any_of(mappings);
            const std::uintptr_t at = found->first;
            const Piece &mapping = found->second;
            const std::size_t asked = one_in(4) ? 1 + below(30) : mapping.pages;
            const bool right = asked == mapping.pages;
            for (const std::uintptr_t place : {at, at + mapping.pages * page - 1})
                expect(probe(place) == mapping.contents->mark, "mapped memory was overwritten");
            expect(memory->unmap(at, asked * page) == right, "unmap() returns the wrong result");
            expect(!memory->unmap(at + 512, asked * page), "unmap() accepts a wrong address");
            if (right) {
                mappings.erase(found);
                expect(probe(at) == -1, "unmapped memory can be read");
            }
            break;
        }
        case 9: { // export and import
            if (physical.empty() || physical.size() > 60)
                break;
            const auto [name, piece] = *any_of(physical);
            int descriptor = -1;
            expect(memory->export_physical(name, &descriptor), "export_physical() refuses physical memory");
            std::uint64_t imported = 0;
            if (one_in(4)) {
                lseek(descriptor, 512, SEEK_CUR);
                expect(!memory->import_physical(descriptor, &imported), "import_physical() accepts a wrong place");
                lseek(descriptor, -512, SEEK_CUR);
            }
            if (one_in(4) && memory->destroy(name))
                physical.erase(name);
            if (!one_in(4)) {
                expect(memory->import_physical(descriptor, &imported), "import_physical() refuses a descriptor");
                expect(physical.emplace(imported, Piece{piece.pages, piece.contents, nullptr}).second,
                       "import_physical() gives the same name twice");
            }
            close(descriptor);
            expect(!memory->export_physical(1u << 30, &descriptor), "export_physical() accepts a wrong name");
            break;
        }
        case 7: { // allocate and release
            if (!blocks.empty() && one_in(2)) {
                const auto found = any_of(blocks);
                // No block begins at half of the alignment.
                const std::uintptr_t wrong = found->first + EmulatedMemory::alignment / 2;
                expect(!memory->release(wrong), "release() accepts a wrong address");
                expect(memory->release(found->first), "release() does not know of a block");
                used -= rounded(found->second);
                blocks.erase(found);
                break;
            }
            const std::size_t most = ~std::size_t(0);
            const std::size_t size = one_in(10) ? limit - below(2 * page) : one_in(20) ? most : below(3 * page);
            const std::uintptr_t address = memory->allocate(size);
            const bool fits = size != 0 && size <= limit && rounded(size) <= limit - used;
            expect((address != 0) == fits, "allocate() returns the wrong result");
            if (fits) {
                expect(address % EmulatedMemory::alignment == 0, "allocate() aligns too little");
                blocks.emplace(address, size);
                used += rounded(size);
            }
            break;
        }
        case 8: { // block_at
            if (!blocks.empty() && one_in(2)) {
                const auto &[address, size] = *any_of(blocks);
                const auto found = memory->block_at(address + below(size));
                expect(found && found->address == address && found->size == size, "block_at() finds another block");
                expect(!memory->is_unmapped(address), "is_unmapped() accepts the address of a block");
            }
            if (reservations.empty())
                break;
            const auto &[start, reserved] = *any_of(reservations);
            const std::uintptr_t at = start + below(reserved * page);
            const auto inside = mapping_at(at);
            const auto found = memory->block_at(at);
            expect(memory->is_unmapped(at) == (inside == mappings.end()), "is_unmapped() is wrong");
            expect(!memory->is_unmapped(reinterpret_cast<std::uintptr_t>(&used)), "is_unmapped() accepts any address");
            if (inside == mappings.end()) {
                expect(!found, "block_at() finds memory where none is mapped");
                break;
            }
            std::uintptr_t first = at / page * page, end = first + page;
            while (mapping_at(first - 1) != mappings.end())
                first -= page;
            while (mapping_at(end) != mappings.end())
                end += page;
            expect(found && found->address == first && found->size == end - first, "block_at() finds another range");
            break;
        }
        }
        expect(memory->used() == used, "EmulatedMemory has another number of used bytes");
        expect(memory->live() == blocks.size() + mappings.size() + reservations.size(),
               "EmulatedMemory::live() is wrong");
    }
}

} // namespace

int main(int count, char **arguments) {
    const std::size_t steps = count > 1 ? std::strtoull(arguments[1], nullptr, 10) : 300000;
    chance.seed(count > 2 ? std::strtoull(arguments[2], nullptr, 10) : 1);
    check_address_map(steps);
    check_even_addresses();
    check_stream_lives(steps);
    check_linked_list(steps);
    check_block_tree(steps);
    check_free_blocks(steps);
    check_host_memory(steps / 10);
    std::printf("structures: %zu steps of each, %zu of EmulatedMemory: nothing is wrong\n", steps, steps / 10);
    return 0;
}
