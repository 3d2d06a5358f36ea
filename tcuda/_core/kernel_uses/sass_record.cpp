#include "kernel_uses/sass_record.hpp"

#include <utility>

#include "kernel_uses/cannot_follow.hpp"

namespace tcuda::kernel_uses {

void SassRecord::incomplete() {
    if (recording_)
        complete_ = false;
}

void SassRecord::lose() const {
    if (recording_)
        throw CannotFollow();
}

void SassRecord::record(std::uint32_t origin, Kind kind, bool certain) {
    if (!recording_)
        return;
    if (origin != member_word && origin != any_word && origin < first_word)
        return;
    const bool known = parameters_.each_word(origin, [&](std::size_t offset) {
        Word &word = words_[offset];
        const bool sure = certain && origin >= first_word;
        (sure ? word.certain : word.possible) = (sure ? word.certain : word.possible) | kind;
    });
    if (!known)
        lose();
}

KernelUse SassRecord::result() const {
    KernelUse use;
    use.parameters = block_.parameters;
    use.complete = complete_;
    for (const auto &[offset, word] : words_) {
        PointerUse pointer;
        pointer.offset = offset;
        pointer.kind = word.certain | word.possible;
        pointer.possible = pointer.kind != word.certain;
        use.pointers.push_back(std::move(pointer));
    }
    return use;
}

} // namespace tcuda::kernel_uses
