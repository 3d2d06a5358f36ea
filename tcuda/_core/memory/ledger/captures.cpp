#include "memory/ledger/captures.hpp"

#include <algorithm>

#include "driver/stream_key.hpp"

namespace tcuda {

bool Captures::has(CaptureId capture) const {
    return std::any_of(captures_.begin(), captures_.end(),
                       [&](const Capture &known) { return known.id == capture || is_part(known, capture); });
}

CaptureId Captures::whole_of(CaptureId capture) const {
    for (const Capture &known : captures_)
        if (is_part(known, capture))
            return known.id;
    return capture;
}

CaptureId Captures::known_of(Stream stream) const {
    for (const Capture &known : captures_)
        for (const Member &member : known.streams)
            if (member.stream == stream)
                return known.id;
    return 0;
}

void Captures::add_stream(CaptureId capture, Stream stream) {
    for (Capture &known : captures_)
        if (known.id == capture || is_part(known, capture))
            known.streams.push_back({stream, capture});
}

void Captures::begin_part(CaptureId capture, CaptureId part) {
    for (Capture &known : captures_)
        if (known.id == capture)
            known.parts.push_back(part);
}

void Captures::end_part(CaptureId part) noexcept {
    for (Capture &known : captures_) {
        if (!is_part(known, part))
            continue;
        known.parts.erase(std::find(known.parts.begin(), known.parts.end(), part));
        const auto gone = std::remove_if(known.streams.begin(), known.streams.end(),
                                         [&](const Member &member) { return member.part == part; });
        known.streams.erase(gone, known.streams.end());
    }
}

void Captures::begin(CaptureId capture) {
    captures_.push_back({capture, thread_number(), {}, nullptr, {}});
    any_.store(true, std::memory_order_relaxed);
}

bool Captures::end(CaptureId capture, Block **kept) noexcept {
    const auto ended =
        std::find_if(captures_.begin(), captures_.end(), [&](const Capture &known) { return known.id == capture; });
    if (ended == captures_.end())
        return false;
    *kept = ended->kept;
    captures_.erase(ended);
    any_.store(!captures_.empty(), std::memory_order_relaxed);
    return true;
}

void Captures::keep(Block *block) noexcept {
    const auto own = std::find_if(captures_.begin(), captures_.end(), [&](const Capture &capture) {
        return capture.thread == thread_number() && capture.id != block->capture;
    });
    if (own == captures_.end())
        return;
    ++block->holds;
    block->right = own->kept; // a live block is in no list or tree, so the link is unused
    own->kept = block;
}

} // namespace tcuda
