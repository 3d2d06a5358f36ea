#include "kernel_uses/sass_uses.hpp"

#include "kernel_uses/sass_flow.hpp"
#include "kernel_uses/sass_listing.hpp"

namespace tcuda::kernel_uses {

KernelUses uses_of_sass(std::string_view listing, const SassFacts &facts) {
    const SassListing read = read_listing(listing);
    const ParameterBlock unknown;
    KernelUses uses;
    std::size_t steps = 0;
    for (const SassListing::Section &section : read.sections) {
        if (!section.kernel)
            continue;
        const std::string name(section.name);
        const auto block = facts.blocks.find(name);
        uses[name] = follow_pointers(read, section, block == facts.blocks.end() ? unknown : block->second,
                                     facts.linked_functions, steps);
    }
    return uses;
}

} // namespace tcuda::kernel_uses
