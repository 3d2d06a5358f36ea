#include "kernel_uses/cubin.hpp"

#include <algorithm>
#include <string_view>

#include "kernel_uses/byte_view.hpp"

namespace tcuda::kernel_uses {
namespace {

// Layout of ELF64: the file's header, the headers of its sections, and its symbols.
constexpr std::uint64_t elf_magic = 0x010102464c457f; // 64 bits, little-endian, version 1; without the ABI
constexpr std::uint16_t cuda_machine = 190;
constexpr std::size_t section_header_size = 64, symbol_size = 24;
constexpr std::uint32_t symbol_table = 2, string_table = 3, relocations_with_addend = 4, no_bits = 8, relocations = 9;
constexpr std::uint32_t cuda_info = 0x70000000;
constexpr std::uint8_t function_type = 2;
constexpr std::uint8_t entry_flag = 0x10; // of a symbol's `other`: the function is a kernel

// Records of the section .nv.info.<kernel>: one byte of format, one byte of attribute, then the value.
constexpr std::uint8_t format_none = 1, format_byte = 2, format_half = 3, format_sized = 4;
constexpr std::uint8_t param_cbank = 0x0a, kparam_info = 0x17, kparam_info_v2 = 0x45;
constexpr std::size_t most_parameters = 4096;

struct Section {
    std::uint32_t type = 0, link = 0;
    ByteView bytes;
};

struct OrderedParameter {
    std::uint16_t ordinal;
    Parameter parameter;
    bool pointer;
};

class CubinReader {
public:
    explicit CubinReader(ByteView file) : file_(file) {}

    std::optional<Cubin> read() {
        if (!read_sections() || !read_symbols())
            return std::nullopt;
        for (auto &[name, kernel] : cubin_.kernels)
            if (!read_info(".nv.info." + name, kernel.block))
                return std::nullopt;
        read_links();
        return std::move(cubin_);
    }

private:
    bool read_sections() {
        const auto magic = file_.number<std::uint64_t>(0);
        const auto machine = file_.number<std::uint16_t>(18);
        const auto offset = file_.number<std::uint64_t>(40);
        const auto entry = file_.number<std::uint16_t>(58), count = file_.number<std::uint16_t>(60);
        const auto names_index = file_.number<std::uint16_t>(62);
        if (!names_index || (*magic & 0xffffffffffffff) != elf_magic || *machine != cuda_machine ||
            *entry != section_header_size || *names_index >= *count)
            return false;
        const auto headers = file_.part(*offset, std::uint64_t(*count) * section_header_size);
        if (!headers)
            return false;
        std::vector<std::uint32_t> names;
        for (std::size_t i = 0; i < *count; ++i) {
            const auto header = *headers->part(i * section_header_size, section_header_size);
            Section section;
            names.push_back(*header.number<std::uint32_t>(0));
            section.type = *header.number<std::uint32_t>(4);
            section.link = *header.number<std::uint32_t>(40);
            if (section.type != no_bits && section.type != 0) {
                const auto bytes = file_.part(*header.number<std::uint64_t>(24), *header.number<std::uint64_t>(32));
                if (!bytes)
                    return false;
                section.bytes = *bytes;
            }
            sections_.push_back(section);
        }
        const ByteView text = sections_[*names_index].bytes;
        for (std::size_t i = 1; i < sections_.size(); ++i) {
            const auto name = name_at(text, names[i]);
            if (!name)
                return false;
            if (sections_[i].type == cuda_info)
                infos_.emplace(*name, i);
            if (*name == ".rela.nv.constant4" || *name == ".rel.nv.constant4")
                linked_ = i;
        }
        return true;
    }

    // The names of a sound file overlap little: a damaged file must not make this long.
    std::optional<std::string_view> name_at(ByteView names, std::uint64_t offset) {
        const auto name = names.text(offset);
        if (!name || (names_size_ += name->size()) > 4 * file_.size())
            return std::nullopt;
        return name;
    }

    bool read_symbols() {
        const auto table = std::find_if(sections_.begin(), sections_.end(),
                                        [](const Section &section) { return section.type == symbol_table; });
        if (table == sections_.end() || table->link >= sections_.size() || sections_[table->link].type != string_table)
            return false;
        const ByteView names = sections_[table->link].bytes;
        std::vector<std::uint16_t> entries;
        std::vector<std::pair<std::uint16_t, std::uint32_t>> others;
        for (std::size_t i = 0; i < table->bytes.size() / symbol_size; ++i) {
            const auto symbol = *table->bytes.part(i * symbol_size, symbol_size);
            const auto type = *symbol.number<std::uint8_t>(4) & 15,
                       other = *symbol.number<std::uint8_t>(5) & entry_flag;
            const auto section = *symbol.number<std::uint16_t>(6);
            if (type != function_type || section >= sections_.size())
                continue;
            const auto name = name_at(names, *symbol.number<std::uint32_t>(0));
            if (!name)
                return false;
            if (section == 0)
                outside_.emplace(std::uint32_t(i), *name);
            else if (other != 0) {
                cubin_.kernels[std::string(*name)].symbol = std::uint32_t(i);
                entries.push_back(section);
            } else {
                others.emplace_back(section, std::uint32_t(i));
            }
        }
        std::sort(entries.begin(), entries.end());
        for (const auto &[section, symbol] : others)
            if (!std::binary_search(entries.begin(), entries.end(), section))
                cubin_.functions.push_back(symbol);
        return true;
    }

    // A file whose relocations cannot be read only tells less.
    void read_links() {
        const Section &section = sections_[linked_];
        const std::size_t size = section.type == relocations ? 16 : section.type == relocations_with_addend ? 24 : 0;
        for (std::size_t at = 0; size > 0 && at + size <= section.bytes.size(); at += size) {
            const auto offset = *section.bytes.number<std::int64_t>(at);
            const auto function = outside_.find(*section.bytes.number<std::uint32_t>(at + 12));
            if (function != outside_.end())
                cubin_.linked_functions[offset] = std::string(function->second);
        }
    }

    bool read_info(const std::string &name, ParameterBlock &block) {
        const auto section = infos_.find(name);
        if (section == infos_.end())
            return true;
        const ByteView bytes = sections_[section->second].bytes;
        std::vector<OrderedParameter> found;
        for (std::size_t at = 0; at + 4 <= bytes.size();) {
            const auto format = *bytes.number<std::uint8_t>(at), attribute = *bytes.number<std::uint8_t>(at + 1);
            const auto size = *bytes.number<std::uint16_t>(at + 2);
            at += 4;
            if (format == format_none || format == format_byte || format == format_half)
                continue;
            if (format != format_sized)
                return false;
            const auto value = bytes.part(at, size);
            if (!value)
                return false;
            at += size;
            if (attribute == kparam_info || attribute == kparam_info_v2) {
                const auto last = value->number<std::uint32_t>(8);
                if (!last || found.size() == most_parameters)
                    return false;
                const bool packed = attribute == kparam_info;
                // `last` is, packed: logarithm of an alignment, space, bank, and 14 bits of size; otherwise: 16 bits of
                // size, then the same without the bank.
                const std::size_t bytes_of = packed ? *last >> 18 : *last & 0xffff;
                const std::uint32_t space = packed ? *last >> 8 & 15 : *last >> 24 & 15;
                found.push_back({*value->number<std::uint16_t>(4),
                                 {*value->number<std::uint16_t>(6), bytes_of},
                                 space != 0 && bytes_of == 8});
            } else if (attribute == param_cbank) {
                const auto base = value->number<std::uint16_t>(4);
                if (!base)
                    return false;
                block.base = *base;
            }
        }
        std::sort(found.begin(), found.end(), [](const OrderedParameter &left, const OrderedParameter &right) {
            return left.ordinal < right.ordinal;
        });
        for (const OrderedParameter &parameter : found) {
            block.parameters.push_back(parameter.parameter);
            if (parameter.pointer)
                block.pointers.push_back(parameter.parameter.offset);
        }
        return true;
    }

    ByteView file_;
    std::vector<Section> sections_;
    std::map<std::string_view, std::size_t> infos_;     // sections with facts of kernels, by name
    std::map<std::uint32_t, std::string_view> outside_; // functions that the file does not hold, by symbol
    std::size_t linked_ = 0;                            // the section with the addresses in constant bank 4
    std::size_t names_size_ = 0;
    Cubin cubin_;
};

} // namespace

std::optional<Cubin> read_cubin(const std::byte *data, std::size_t size) {
    return CubinReader(ByteView(data, size)).read();
}

} // namespace tcuda::kernel_uses
