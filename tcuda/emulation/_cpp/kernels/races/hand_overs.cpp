#include "emulation/_cpp/kernels/races/hand_overs.hpp"

#include <algorithm>
#include <utility>

namespace tcuda {
namespace {

// A search that looks at more entries takes the access for known: nobody shall be accused without a proof.
constexpr std::size_t most_entries = 4096;
constexpr std::size_t most_entries_of_log = 1u << 16; // beyond them, a thread has one entry for each fence
constexpr std::size_t most_imports = 64; // of a log in another log, beyond the last one

} // namespace

HandOvers::HandOvers(BlockClock &clock, unsigned threads)
    : clock_(clock), threads_(threads), marks_(threads), known_(threads), pending_(threads) {}

void HandOvers::start_block() {
    if (std::exchange(any_mark_, false))
        std::fill(marks_.begin(), marks_.end(), Marks{});
    marks_generation_ = 0;
    if (!std::exchange(any_seen_, false))
        return;
    known_to_block_.clear();
    for (unsigned thread = 0; thread < threads_; ++thread) {
        known_[thread].clear();
        pending_[thread].clear();
    }
}

HandOvers::OfBlock HandOvers::resting() const {
    return {marks_,    steps_at_fence_, known_,      pending_,          known_to_block_,
            any_seen_, any_mark_,       first_mark_, marks_generation_, marks_number_};
}

void HandOvers::go_on_with(const OfBlock &resting) {
    marks_ = resting.marks;
    steps_at_fence_ = resting.steps_at_fence;
    known_ = resting.known;
    pending_ = resting.pending;
    known_to_block_ = resting.known_to_block;
    any_seen_ = resting.any_seen;
    any_mark_ = resting.any_mark;
    first_mark_ = resting.first_mark;
    marks_generation_ = resting.marks_generation;
    marks_number_ = resting.marks_number;
}

// A barrier is a fence for what the threads have read, and not for what they have written.
void HandOvers::pass_barrier() {
    if (!any_seen_)
        return;
    for (unsigned thread = 0; thread < threads_; ++thread) {
        for (auto *list : {&known_[thread], &pending_[thread]}) {
            for (const Seen &seen : *list)
                add(known_to_block_, seen);
            list->clear();
        }
    }
}

void HandOvers::join(unsigned warp, std::uint32_t lanes) {
    if (!any_seen_)
        return;
    std::vector<Seen> together;
    for (std::uint32_t rest = lanes; rest != 0; rest &= rest - 1)
        for (const Seen &seen : known_[warp * BlockClock::lanes + static_cast<unsigned>(__builtin_ctz(rest))])
            add(together, seen);
    if (together.empty())
        return;
    for (std::uint32_t rest = lanes; rest != 0; rest &= rest - 1)
        known_[warp * BlockClock::lanes + static_cast<unsigned>(__builtin_ctz(rest))] = together;
}

void HandOvers::add(std::vector<Seen> &list, Seen seen) {
    for (Seen &known : list) {
        if (known.log != seen.log || known.wide != seen.wide)
            continue;
        known.count = std::max(known.count, seen.count);
        return;
    }
    list.push_back(seen);
}

void HandOvers::set(Mark &mark, BlockTime time) const {
    if (mark.last.generation < time.generation)
        mark.before = mark.last;
    mark.last = time;
}

BlockTime HandOvers::of_barrier(const Mark &mark, std::uint32_t generation) {
    return mark.last.generation < generation ? mark.last : mark.before;
}

void HandOvers::fence(unsigned thread, abi::Scope scope) {
    const BlockTime now = clock_.time(thread);
    if (!std::exchange(any_mark_, true))
        first_mark_ = now.generation;
    set(marks_[thread].any, now);
    if (scope == abi::Scope::device)
        set(marks_[thread].wide, now);
    if (clock_.has_joined(thread)) {
        if (steps_at_fence_.empty())
            steps_at_fence_.resize(threads_);
        std::copy_n(clock_.known_steps(thread), BlockClock::lanes, steps_at_fence_[thread].known);
    }
    clock_.advance(thread);
    for (const Seen &seen : pending_[thread])
        add(known_[thread], {seen.log, seen.count, seen.wide && scope == abi::Scope::device});
    if (scope == abi::Scope::device)
        pending_[thread].clear();
}

void HandOvers::read(unsigned thread, std::uintptr_t address, abi::Scope scope) {
    if (logs_.empty())
        return;
    const auto found = log_of_.find(address);
    if (found == log_of_.end())
        return;
    any_seen_ = true;
    Log &log = logs_[found->second];
    const Entry &last = log.entries.back();
    log.seen = log.seen || last.block != clock_.block() || last.thread != thread;
    const auto count = static_cast<std::uint32_t>(log.entries.size());
    add(pending_[thread], {found->second, count, scope == abi::Scope::device});
}

bool HandOvers::write(unsigned thread, std::uintptr_t address, std::uint64_t size, abi::Scope scope, bool updates) {
    if (!any_mark_ && logs_.empty())
        return false;
    const auto found = log_of_.find(address);
    const bool known = found != log_of_.end();
    // A write that updates nothing ends what other threads have handed over here.
    bool fresh = !known;
    if (known && !updates) {
        const Entry &last = logs_[found->second].entries.back();
        fresh = last.block != clock_.block() || last.thread != thread;
    }
    const Marks &marks = marks_[thread];
    const std::uint32_t block_marks = any_mark_ ? marks_of_block() : 0;
    if (!any_mark_ || (marks.any.last.generation == 0 && block_marks == 0)) {
        if (known && fresh)
            log_of_.erase(found);
        return false;
    }
    if (fresh) {
        log_of_[address] = static_cast<std::uint32_t>(logs_.size());
        logs_.emplace_back();
        logs_.back().address = address;
        logs_.back().size = size;
    }
    const std::uint32_t number = log_of_[address];
    Log &log = logs_[number];
    Entry entry{clock_.block(), thread, clock_.time(thread), marks.any.last, {}, block_marks, 0};
    if (scope == abi::Scope::device)
        entry.wide = marks.wide.last;
    if (!log.entries.empty() && adds_nothing(log, entry)) {
        log.entries.back().at = entry.at;
    } else {
        if (!steps_at_fence_.empty() && clock_.has_joined(thread) && entry.any.generation == clock_.generation()) {
            steps_.push_back(steps_at_fence_[thread]);
            entry.known_steps = static_cast<std::uint32_t>(steps_.size());
        }
        log.of_block[entry.block].push_back(static_cast<std::uint32_t>(log.entries.size()));
        log.entries.push_back(entry);
        log.seen = false;
        log.narrow = log.narrow || tells_less(entry);
    }
    import(log, number, known_[thread]);
    import(log, number, known_to_block_);
    clock_.advance(thread);
    return true;
}

// The last entry of the log needs what its writer knows.
void HandOvers::import(Log &log, std::uint32_t number, const std::vector<Seen> &known) const {
    const auto place = static_cast<std::uint32_t>(log.entries.size() - 1);
    const Entry &entry = log.entries.back();
    for (const Seen &seen : known) {
        // Threads of the block know more than threads of other blocks.
        const bool narrow = logs_[seen.log].narrow || !seen.wide;
        if (seen.log == number && !narrow)
            continue;
        std::vector<Import> &imports = log.imports[seen.log];
        const Import added{place, seen.count, seen.wide, tells_others(entry)};
        const Import *const last = imports.empty() ? nullptr : &imports.back();
        if (last == nullptr || last->count < added.count || last->wide < added.wide ||
            last->released < added.released || (narrow && log.entries[last->place].block != entry.block))
            imports.push_back(added);
    }
}

// Whether the last entry can stand for the new one too, as that of a thread that spins by an atomic function.
bool HandOvers::adds_nothing(const Log &log, const Entry &entry) {
    const Entry &last = log.entries.back();
    if (last.block != entry.block || last.thread != entry.thread || last.any < entry.any)
        return false;
    if (log.entries.size() >= most_entries_of_log)
        return true;
    return !log.seen && last.at.generation == entry.at.generation && !(last.wide < entry.wide) &&
           !(entry.wide < last.wide) && last.block_marks == entry.block_marks;
}

bool HandOvers::tells_less(const Entry &entry) const {
    if (entry.wide < entry.any)
        return true;
    if (entry.block_marks == 0)
        return false;
    const BlockMarks &marks = block_marks_[entry.block_marks - 1];
    return marks.last_wide < marks.last_any;
}

// Whether a fence has made anything ready for other blocks.
bool HandOvers::tells_others(const Entry &entry) const {
    return entry.wide.generation != 0 ||
           (entry.block_marks != 0 && block_marks_[entry.block_marks - 1].last_wide.generation != 0);
}

// The number of the marks of all threads at the last barrier, plus one; 0 if no thread had a mark.
std::uint32_t HandOvers::marks_of_block() {
    const std::uint32_t generation = clock_.generation();
    if (first_mark_ >= generation)
        return 0;
    if (marks_generation_ == generation)
        return marks_number_;
    BlockMarks found;
    for (unsigned thread = 0; thread < threads_; ++thread) {
        found.any.push_back(of_barrier(marks_[thread].any, generation));
        found.wide.push_back(of_barrier(marks_[thread].wide, generation));
        found.last_any = std::max(found.last_any, found.any.back());
        found.last_wide = std::max(found.last_wide, found.wide.back());
    }
    for (auto *times : {&found.any, &found.wide}) {
        const BlockTime first = times->front();
        if (std::all_of(times->begin(), times->end(),
                        [&](const BlockTime &time) { return !(time < first) && !(first < time); }))
            *times = {first};
        times->shrink_to_fit();
    }
    block_marks_.push_back(std::move(found));
    marks_generation_ = generation;
    return marks_number_ = static_cast<std::uint32_t>(block_marks_.size());
}

// `near` tells whether functions of block scope count.
bool HandOvers::covers(const Log &log, const Entry &entry, const Target &target, bool near) const {
    const BlockTime mark = near ? entry.any : entry.wide;
    const BlockTime &time = target.time;
    const bool valid = mark.generation != 0;
    // The entry tells of itself, and of earlier writes of the thread to the same place.
    if (valid && target.of_atomic && entry.thread == target.thread && !(entry.at < time) &&
        (!(time < entry.at) || target.address - log.address < log.size))
        return true;
    if (mark.generation > time.generation)
        return true;
    if (valid && mark.generation == time.generation) {
        if (entry.thread == target.thread && !(mark < time))
            return true;
        if (entry.known_steps != 0 && entry.thread / BlockClock::lanes == target.thread / BlockClock::lanes &&
            time.step < steps_[entry.known_steps - 1].known[target.thread % BlockClock::lanes])
            return true;
    }
    if (entry.block_marks == 0)
        return false;
    const BlockMarks &marks = block_marks_[entry.block_marks - 1];
    if ((near ? marks.last_any : marks.last_wide).generation > time.generation)
        return true;
    const std::vector<BlockTime> &times = near ? marks.any : marks.wide;
    return !(times[times.size() == 1 ? 0 : target.thread] < time);
}

bool HandOvers::has(const Log &log, std::uint32_t count, const Target &target, bool near) const {
    const auto found = log.of_block.find(target.block);
    if (found == log.of_block.end())
        return false;
    const std::vector<std::uint32_t> &places = found->second;
    auto place = std::lower_bound(places.begin(), places.end(), count);
    for (std::size_t looked = 0; place != places.begin(); ++looked) {
        const Entry &entry = log.entries[*--place];
        if (entry.at.generation < target.time.generation)
            return false;
        if (looked == most_entries || covers(log, entry, target, near))
            return true;
    }
    return false;
}

bool HandOvers::knows(unsigned thread, AccessStamp stamp, std::uintptr_t address, bool of_atomic, Also also) const {
    const bool with_pending = also == Also::without_fence;
    if (known_[thread].empty() && known_to_block_.empty() && (!with_pending || pending_[thread].empty()))
        return false;
    const Target target{clock_.block_of(stamp), stamps::thread(stamp), clock_.time_of(stamp), address, of_atomic};
    // A function of block scope counts between threads of one block.
    const auto is_near = [&](std::uint32_t block) { return also == Also::small_scopes || block == target.block; };
    std::unordered_map<std::uint64_t, std::uint32_t> looked; // the entries of each log that are in `left` or done
    std::vector<Step> left;
    const auto look_at = [&](const Step &step) {
        const unsigned reach = 2 * step.wide + is_near(step.block);
        std::uint32_t &count = looked[std::uint64_t(step.log) << 2 | reach];
        if (count >= step.count)
            return;
        count = step.count;
        left.push_back(step);
    };
    for (const auto *list : {&known_[thread], &known_to_block_})
        for (const Seen &seen : *list)
            look_at({seen.log, seen.count, clock_.block(), seen.wide});
    if (with_pending)
        for (const Seen &seen : pending_[thread])
            look_at({seen.log, seen.count, clock_.block(), seen.wide});
    for (std::size_t next = 0; next < left.size(); ++next) {
        const Step step = left[next];
        const Log &log = logs_[step.log];
        const bool near = is_near(step.block);
        if ((step.wide || near) && has(log, step.count, target, near))
            return true;
        for (const auto &[other, imports] : log.imports) {
            auto import =
                std::lower_bound(imports.begin(), imports.end(), step.count,
                                 [](const Import &each, std::uint32_t entries) { return each.place < entries; });
            // The last import is enough, unless threads of the target's block know more by an earlier one.
            for (std::size_t passed = 0; import != imports.begin() && passed <= most_imports; ++passed) {
                const auto &[place, count, wide, released] = *--import;
                const std::uint32_t importer = log.entries[place].block;
                if (!(released && step.wide) && importer != step.block && also != Also::small_scopes)
                    continue;
                look_at({other, count, importer, wide});
                if (is_near(importer) || (wide && !logs_[other].narrow))
                    break;
            }
        }
        if (next == most_entries)
            return true;
    }
    return false;
}

} // namespace tcuda
