#include "memory/allocator/windows.hpp"

#include <iterator>
#include <new>
#include <utility>

#include "memory/allocator/physical_memory.hpp"
#include "memory/allocator/sizes.hpp"

namespace tcuda {
namespace {

// The smallest free block that a window may show. The bound keeps a search from many tiny blocks.
constexpr std::size_t least_part = small_segment / 64;

Address end_of(const Segment::Mappings::value_type &piece) { return piece.first + piece.second.size; }

} // namespace

// Searching

// Finds the free blocks of the expandable segment that may hold a piece, its start or its end.
void Windows::find_runs(const Heap &heap) {
    runs_.clear();
    heap.free.each_from(least_part, [&](Block *block) {
        if (block->segment == heap.expandable)
            runs_.push_back({block->address, block->address + block->size, block});
    });
    std::sort(runs_.begin(), runs_.end(), [](const Run &left, const Run &right) { return left.begin < right.begin; });
}

// Finds the pieces in the runs, and drops the runs in which no piece begins or ends.
Windows::Found Windows::find_pieces(const Heap &heap) {
    Found found;
    if (heap.expandable == nullptr) {
        runs_.clear();
        return found;
    }
    find_runs(heap);
    const Segment::Mappings &mappings = heap.expandable->mappings;
    for (Run &run : runs_) {
        auto piece = mappings.lower_bound(run.begin);
        const bool begins_with_a_piece = piece != mappings.end() && piece->first == run.begin;
        // The next piece may lie behind a hole, so the piece in which the run begins tells where that piece ends.
        run.first = run.last = begins_with_a_piece ? run.begin : end_of(*std::prev(piece));
        for (; piece != mappings.end() && end_of(*piece) <= run.end; ++piece)
            run.last = end_of(*piece);
    }
    const auto is_within_a_piece = [](const Run &run) { return run.first > run.end; };
    runs_.erase(std::remove_if(runs_.begin(), runs_.end(), is_within_a_piece), runs_.end());
    for (const Run &run : runs_) {
        found.whole += run.size();
        if (run.first - run.begin > found.end.size) {
            const auto piece = std::prev(mappings.lower_bound(run.first));
            found.end = {piece->first, run.first - run.begin};
        }
    }
    for (const Run &run : runs_)
        if (run.end - run.last > found.begin.size && run.last != found.end.piece) // a window shows no piece twice
            found.begin = {run.last, run.end - run.last};
    return found;
}

std::size_t Windows::largest(const Heap &heap) {
    try {
        return find_pieces(heap).size();
    } catch (const std::bad_alloc &) {
        return 0;
    }
}

// The run that has all bytes of a range; null if there is none.
Windows::Run *Windows::run_around(Address begin, Address end) {
    const auto after = std::upper_bound(runs_.begin(), runs_.end(), begin,
                                        [](Address address, const Run &run) { return address < run.begin; });
    if (after == runs_.begin() || std::prev(after)->end < end)
        return nullptr;
    return &*std::prev(after);
}

// Opening

bool Windows::open_kept(Heap &heap, std::size_t size) {
    bool searched = false;
    for (const auto &window : heap.windows) {
        if (window->open || window->broken || window->size < size)
            continue;
        try {
            if (!std::exchange(searched, true))
                find_runs(heap);
        } catch (const std::bad_alloc &) {
            return false;
        }
        if (open(heap, *window, size))
            return true;
    }
    return false;
}

// Moves memory from home to the window: as little as a request needs, but some of each piece. `runs_` are the runs of
// the heap. False without host memory, or if the memory is not free.
bool Windows::open(Heap &heap, Window &window, std::size_t size) {
    const std::size_t first_piece = window.segment.mappings.begin()->second.size;
    const std::size_t last_piece = window.segment.mappings.rbegin()->second.size;
    Window::Range &front = window.ranges.front(), &back = window.ranges.back();
    const Run *begin = run_around(front.begin + first_piece - unit, front.end);
    const Run *end = run_around(back.begin, back.end - last_piece + unit);
    if (begin == nullptr || end == nullptr)
        return false;
    Address from = std::max(begin->begin, front.begin), to = std::min(end->end, back.end);
    const std::size_t free = window.size - (from - front.begin) - (back.end - to);
    if (free < size)
        return false;
    for (auto range = window.ranges.begin() + 1; range < window.ranges.end() - 1; ++range)
        if (run_around(range->begin, range->end) == nullptr)
            return false;
    if (!store_.has_spare(2 * window.ranges.size() + 1)) // for the rests of the blocks at home, and for the window
        return false;
    // The rest stays at home: first of the last piece, then of the first piece.
    const std::size_t behind = std::min(free - size, to - (back.end - last_piece) - unit);
    to -= behind;
    from += std::min(free - size - behind, front.begin + first_piece - unit - from);

    std::uint64_t freed_at = 0;
    std::size_t used = 0;
    for (Window::Range &range : window.ranges) {
        const Address first = &range == &front ? from : range.begin, last = &range == &back ? to : range.end;
        Block *block = run_around(first, last)->block;
        while (block->address + block->size <= first) // another range may have divided the block
            block = block->after;
        freed_at = std::max(freed_at, block->freed_at);
        range.elsewhere = splitter_.take_out(heap, block, first, last, Block::State::elsewhere);
        used += last - first;
        history_.note_move(Action::segment_unmap, first, last - first, heap.stream, window.segment.stack);
    }
    Block *block = store_.make();
    block->address = window.segment.address = window.address + (from - front.begin);
    block->size = window.segment.size = used;
    block->segment = &window.segment;
    block->state = Block::State::elsewhere;
    block->is_large = heap.is_large;
    block->freed_at = freed_at;
    block->stream = heap.stream;
    block->pool = heap.pool;
    window.segment.first = block;
    window.open = true;
    window.opened_at = ++heap.opened_windows;
    history_.note_move(Action::segment_map, block->address, block->size, heap.stream, window.segment.stack);
    splitter_.put_back(heap, block);
    return true;
}

void Windows::close(Heap &heap, Block *block) {
    Window &window = *block->segment->window;
    const std::uint64_t freed_at = block->freed_at;
    splitter_.take_out(heap, block, block->address, block->address + block->size, Block::State::elsewhere);
    history_.note_move(Action::segment_unmap, block->address, block->size, heap.stream, window.segment.stack);
    store_.remove(block);
    window.segment.first = nullptr;
    window.segment.address = window.address;
    window.segment.size = window.size;
    window.open = false;
    window.closed_at = freed_at;
    for (Window::Range &range : window.ranges) {
        Block *home = std::exchange(range.elsewhere, nullptr);
        home->freed_at = freed_at;
        history_.note_move(Action::segment_map, home->address, home->size, heap.stream, window.segment.stack);
        splitter_.put_back(heap, home);
    }
}

// Making

// Chooses free pieces for a window: the longest free end of a piece, as few runs of whole pieces as possible, and the
// longest free begin of a piece.
bool Windows::choose(Heap &heap, std::size_t size, Pieces &pieces) {
    const Found found = find_pieces(heap);
    if (found.size() < size)
        return false;
    Segment::Mappings &mappings = heap.expandable->mappings;
    if (found.end.size != 0)
        pieces.push_back(mappings.find(found.end.piece));
    std::size_t left = size - found.end.size; // a free end of this size would be a free block for the request
    std::vector<Run> runs = runs_;
    std::sort(runs.begin(), runs.end(), [](const Run &left, const Run &right) { return left.size() > right.size(); });
    for (std::size_t at = 0; left > found.begin.size; ++at) {
        std::size_t last = at;
        while (last + 1 < runs.size() && runs[last + 1].size() + found.begin.size >= left)
            ++last;
        for (auto piece = mappings.find(runs[last].first);
             left > found.begin.size && piece != mappings.end() && piece->first < runs[last].last; ++piece) {
            pieces.push_back(piece);
            left -= std::min(left, piece->second.size);
        }
        if (pieces.size() > most_pieces)
            return false;
    }
    const auto by_address = [](const auto &left, const auto &right) { return left->first < right->first; };
    std::sort(pieces.begin() + (found.end.size != 0), pieces.end(), by_address);
    if (left != 0)
        pieces.push_back(mappings.find(found.begin.piece));
    return true;
}

bool Windows::make(Heap &heap, std::size_t size) {
    if (are_full(heap))
        return false;
    try {
        Pieces pieces;
        if (!choose(heap, size, pieces))
            return false;
        auto made = std::make_unique<Window>();
        Window &window = *made;
        window.segment.heap = &heap;
        window.segment.expandable = true;
        window.segment.window = &window;
        window.segment.stack = heap.expandable->stack;
        for (const auto &piece : pieces) {
            const Address end = piece->first + piece->second.size;
            window.size += piece->second.size;
            if (!window.ranges.empty() && window.ranges.back().end == piece->first)
                window.ranges.back().end = end;
            else
                window.ranges.push_back({piece->first, end});
        }
        heap.windows.reserve(heap.windows.size() + 1);
        unreleased_.reserve(unreleased_.size() + heap.windows.size() + 1); // so that let_go() cannot fail
        if (driver_.reserve(device_, window.size, &window.address) != success)
            return false;
        window.segment.address = window.address;
        window.segment.size = window.size;
        const int status = map(window, pieces);
        if (status == success && open(heap, window, size)) {
            heap.windows.push_back(std::move(made));
            return true;
        }
        if (unmap(window) == success)
            let_go(std::move(made));
        else
            heap.windows.push_back(std::move(made));
        return false;
    } catch (const std::bad_alloc &) {
        return false;
    }
}

int Windows::map(Window &window, const Pieces &pieces) {
    Address at = window.address;
    for (const auto &piece : pieces) {
        const std::size_t size = piece->second.size;
        Segment::Mappings::iterator added;
        try {
            added = window.segment.mappings
                        .emplace(at, Segment::Mapping{size, piece->second.physical, PhysicalMemory::next_number()})
                        .first;
        } catch (const std::bad_alloc &) {
            return out_of_memory;
        }
        if (const int status = driver_.map(device_, at, size, piece->second.physical)) {
            window.segment.mappings.erase(added);
            return status;
        }
        ++statistics_.num_device_alloc;
        at += size;
    }
    return success;
}

// Unmapping

// Unmaps a closed window.
int Windows::unmap(Window &window) {
    auto &mappings = window.segment.mappings;
    for (auto mapping = mappings.begin(); mapping != mappings.end();) {
        if (const int status = unmap(*mapping)) {
            window.broken = true;
            return status;
        }
        history_.forget(mapping->first, mapping->second.size);
        mapping = mappings.erase(mapping);
    }
    return success;
}

int Windows::unmap(Segment::Mappings::value_type &mapping) {
    if (mapping.second.asleep)
        return success;
    const int status = driver_.unmap(device_, mapping.first, mapping.second.size);
    statistics_.num_device_free += status == success;
    return status;
}

// Gives the addresses of an unmapped window back.
void Windows::let_go(std::unique_ptr<Window> window) {
    if (driver_.release(device_, window->address, window->size) != success)
        unreleased_.push_back(std::move(window));
}

int Windows::unmap(Heap &heap, Address from, Address to) {
    const auto shows = [&](const Window::Range &range) { return range.begin < to && from < range.end; };
    int status = success;
    std::size_t kept = 0;
    for (auto &window : heap.windows) {
        const bool wanted = !window->open && std::any_of(window->ranges.begin(), window->ranges.end(), shows);
        const int failure = wanted ? unmap(*window) : success;
        status = status == success ? failure : status;
        if (wanted && failure == success)
            let_go(std::move(window));
        else
            std::swap(heap.windows[kept++], window);
    }
    heap.windows.resize(kept);
    return status;
}

void Windows::unmap_stale(Heap &heap, std::uint64_t settled) {
    std::vector<std::uint64_t> ages;
    for (const auto &window : heap.windows)
        ages.push_back(window->opened_at);
    const auto middle = ages.begin() + static_cast<std::ptrdiff_t>(ages.size() / 2);
    std::nth_element(ages.begin(), middle, ages.end());
    std::size_t kept = 0;
    for (auto &window : heap.windows) {
        const bool stale = !window->open && window->closed_at <= settled && window->opened_at < *middle;
        if (stale && unmap(*window) == success)
            let_go(std::move(window));
        else
            std::swap(heap.windows[kept++], window);
    }
    heap.windows.resize(kept);
}

// Sleeping

int Windows::sleep(Heap &heap) {
    int first = success;
    for (const auto &window : heap.windows)
        for (auto &mapping : window->segment.mappings) {
            const int status = unmap(mapping);
            mapping.second.asleep = status == success;
            first = first == success ? status : first;
        }
    return first;
}

int Windows::wake(Heap &heap) {
    const auto &homes = heap.expandable->mappings;
    for (const auto &window : heap.windows) {
        auto range = window->ranges.begin();
        Address home = range->begin;
        for (auto &[address, mapping] : window->segment.mappings) {
            if (home == range->end)
                home = (++range)->begin;
            const Segment::Mapping &at_home = homes.at(home);
            home += mapping.size;
            // A window that the driver failed to unmap may still show the memory from before.
            if (!mapping.asleep && mapping.number > at_home.number)
                continue;
            int status = mapping.asleep ? success : driver_.unmap(device_, address, mapping.size);
            if (status == success) {
                mapping.asleep = true;
                status = driver_.map(device_, address, mapping.size, at_home.physical);
            }
            if (status != success)
                return status;
            mapping.asleep = false;
            mapping.physical = at_home.physical;
            mapping.number = PhysicalMemory::next_number();
            ++statistics_.num_device_alloc;
        }
    }
    return success;
}

// Failures

void Windows::retry() {
    for (std::size_t at = unreleased_.size(); at-- > 0;) {
        if (driver_.release(device_, unreleased_[at]->address, unreleased_[at]->size) != success)
            continue;
        std::swap(unreleased_[at], unreleased_.back());
        unreleased_.pop_back();
    }
}

void Windows::free_everything(Heap &heap) {
    for (auto &window : heap.windows)
        if (unmap(*window) == success)
            let_go(std::move(window));
    heap.windows.clear();
}

} // namespace tcuda
