// The two steps of encoding a block, for tests of the kernels: gompfs._native.codec.parse_sequences
// and encode_sequences. Sequences are packed as kernels/shared/packed_sequence.h says.
#include <nanobind/nanobind.h>

#include <cstdint>
#include <stdexcept>
#include <vector>

#include "bindings/arrays.h"
#include "bindings/bindings.h"
#include "bindings/buffer_view.h"
#include "bindings/codec_argument.h"
#include "bindings/types.h"
#include "codec/bit_codec.h"
#include "codec/byte_codec.h"
#include "codec/parse/choose_parser.h"
#include "codec/payload.h"
#include "common/little_endian.h"
#include "shared/packed_sequence.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace gompfs {
namespace {

std::uint64_t pack(const Sequence& sequence) {
    return pack_sequence(sequence.literal_length, sequence.match_length, sequence.match_offset);
}

Sequence unpack(std::uint64_t packed) {
    const UnpackedSequence sequence = unpack_sequence(packed);
    return {sequence.literal_length, sequence.match_length, sequence.match_offset};
}

// Whether a payload of this codec can hold the sequence.
bool is_possible(const Sequence& sequence, const ParserLimits& limits) {
    const bool has_match = sequence.match_length != 0;
    return sequence.literal_length <= limits.max_literal_length &&
           sequence.match_length <= limits.max_match_length &&
           sequence.match_offset <= limits.max_match_offset &&
           (sequence.match_offset != 0) == has_match &&
           (!has_match || sequence.match_length >= limits.min_match_length);
}

EncodeOptions checked_options(Codec codec, int level, bool dependency_elimination,
                              int group_size_log2, bool strict_sources) {
    const EncodeOptions options{codec, level, dependency_elimination, group_size_log2,
                                strict_sources};
    check_options(options);
    if (codec == Codec::stored) {
        throw std::invalid_argument("a stored block has no sequences");
    }
    return options;
}

// What the kernels of kernels/encode must know about a codec and a level.
struct ParserSettings {
    ParserLimits limits;
    SearchEffort effort;
};

ParserLimits limits_of(const EncodeOptions& options) {
    return options.codec == Codec::gompresso_bit ? bit_parser_limits(options)
                                                 : byte_parser_limits(options);
}

ParserSettings settings_of(CodecArgument codec, int level) {
    const EncodeOptions options = checked_options(codec, level, true, kDefaultGroupSizeLog2, false);
    return {limits_of(options), search_effort(level, codec == Codec::gompresso_bit)};
}

nb::bytes parse(const py::Buffer& content, CodecArgument codec, int level,
                bool dependency_elimination, int group_size_log2, bool strict_sources) {
    const EncodeOptions options =
        checked_options(codec, level, dependency_elimination, group_size_log2, strict_sources);
    const BufferView view(content, PyBUF_SIMPLE);
    std::vector<std::uint64_t> packed;
    for (const Sequence& sequence : parse_content(view.bytes(), options)) {
        packed.push_back(pack(sequence));
    }
    return nb::bytes(packed.data(), packed.size() * sizeof(std::uint64_t));
}

nb::bytes encode(const py::Buffer& content, const py::Buffer& sequences, CodecArgument codec,
                 bool dependency_elimination, int group_size_log2) {
    const EncodeOptions options =
        checked_options(codec, kMinLevel, dependency_elimination, group_size_log2, false);
    const BufferView view(content, PyBUF_SIMPLE);
    const BufferView packed(sequences, PyBUF_SIMPLE);
    const ParserLimits limits = limits_of(options);
    std::vector<Sequence> unpacked;
    std::uint64_t total = 0;
    for (std::size_t at = 0; at + sizeof(std::uint64_t) <= packed.bytes().size();
         at += sizeof(std::uint64_t)) {
        unpacked.push_back(unpack(load<std::uint64_t>(packed.bytes().data() + at)));
        if (!is_possible(unpacked.back(), limits)) {
            throw std::invalid_argument("no payload can hold one of the sequences");
        }
        total += unpacked.back().literal_length + unpacked.back().match_length;
    }
    if (total != view.bytes().size()) {
        throw std::invalid_argument("the sequences have another size than the content");
    }
    return to_bytes(encode_sequences(view.bytes(), unpacked, options));
}

}  // namespace

void bind_codec_sequences(nb::module_& codec) {
    nb::class_<ParserSettings>(codec, "ParserSettings",
                               "What a parser on a GPU must know: see native/codec/parse/parser.h. "
                               "Raises ValueError for a "
                               "level that does not exist.")
        .def(nb::new_(&settings_of), "codec"_a, "level"_a)
        .def_prop_ro("chain_length", [](const ParserSettings& s) { return s.effort.chain_length; })
        .def_prop_ro("nice_length", [](const ParserSettings& s) { return s.effort.nice_length; })
        .def_prop_ro("lazy_steps", [](const ParserSettings& s) { return s.effort.lazy_steps; })
        .def_prop_ro("finds_short", [](const ParserSettings& s) { return s.effort.finds_short; })
        .def_prop_ro("later_ends_later",
                     [](const ParserSettings& s) { return s.effort.later_ends_later; })
        .def_prop_ro("skips", [](const ParserSettings& s) { return s.effort.skips; })
        .def_prop_ro("backward_chain_length",
                     [](const ParserSettings& s) { return s.effort.backward_chain_length; })
        .def_prop_ro("backward_nice_length",
                     [](const ParserSettings& s) { return s.effort.backward_nice_length; })
        .def_prop_ro("min_match_length",
                     [](const ParserSettings& s) { return s.limits.min_match_length; })
        .def_prop_ro("max_match_length",
                     [](const ParserSettings& s) { return s.limits.max_match_length; })
        .def_prop_ro("max_match_offset",
                     [](const ParserSettings& s) { return s.limits.max_match_offset; })
        .def_prop_ro("max_literal_length",
                     [](const ParserSettings& s) { return s.limits.max_literal_length; });
    codec.def("parse_sequences", &parse, "content"_a, "codec"_a, "level"_a,
              "dependency_elimination"_a, "group_size_log2"_a = kDefaultGroupSizeLog2,
              "strict_sources"_a = false,
              "Cuts the content of one block into sequences, the first step of encoding.\n\n"
              "Returns each as a u64: from the lowest bit, the match offset (32 bits), the match "
              "length (12 bits) and the literal length. Raises ValueError for a level or a group "
              "size that does not exist.");
    codec.def("encode_sequences", &encode, "content"_a, "sequences"_a, "codec"_a,
              "dependency_elimination"_a, "group_size_log2"_a = kDefaultGroupSizeLog2,
              "Writes the payload of one block for sequences as `parse_sequences` returns them.\n\n"
              "Raises ValueError if the sequences have another size than the content, if a payload "
              "cannot hold one of them, or if the group size does not exist.");
}

}  // namespace gompfs
