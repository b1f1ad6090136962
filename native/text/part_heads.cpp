// Opens heads of parts; see part_heads.h.
//
// Two threads that need the same head at the same time both decode it: that takes less time than to
// wait. The section of words is read when the first head is opened. If it is damaged, it counts as
// empty: heads that use none of its words can still be opened. The dictionary is read when the
// first block needs it. If it is damaged, so are all blocks that use it.
#include "text/part_heads.h"

#include <algorithm>
#include <limits>
#include <stdexcept>
#include <utility>

#include "codec/dictionary.h"
#include "common/failures.h"
#include "common/large_vector.h"
#include "shared/format_constants.h"
#include "text/head.h"

namespace gompfs {
namespace {

// A section of words stands for at most this many bytes per byte of its payloads, and some more.
constexpr std::uint64_t kMaxWordExpansion = 128;
constexpr std::uint64_t kMinWordBytes = 1 << 20;

constexpr std::size_t kMaxHeadSize = kBlockHeaderSize + kMaxHeadPayload;
constexpr std::uint64_t kMaxRunSize = 512 << 10;  // of heads that are read at once
constexpr std::uint64_t kHeadAlignment = 16;

// More threads do not read the section faster.
constexpr unsigned kMaxThreads = 8;

// The content of a section, which matches its checksums if the status is ok.
struct SectionContent {
    LargeVector<std::uint8_t> bytes;
    std::uint64_t num_stored = 0;  // bytes of payloads
    BlockStatus status = BlockStatus::ok;
};

// Reads a section; one that would have more than max_size bytes has a bad header.
SectionContent read_section(const SectionBlocks& section, const Fetch& fetch,
                            std::uint64_t max_size, unsigned num_threads) {
    std::vector<FetchedBytes> blocks;
    std::vector<std::uint64_t> ends;  // of the content of each block
    SectionContent content;
    std::uint64_t size = 0;
    for (std::size_t number = 0; number < section.archive_offsets.size(); ++number) {
        blocks.push_back(fetch(section.archive_offsets[number], section.compressed_sizes[number]));
        const std::optional<BlockHeader> header = parse_block_header(blocks.back());
        // The size is checked now, so that what is read has at most as many bytes as the content.
        if (!header || header->codec == Codec::head ||
            blocks.back().size() != kBlockHeaderSize + std::size_t{header->payload_size} ||
            (!section.uncompressed_sizes.empty() &&
             header->uncompressed_size != section.uncompressed_sizes[number]) ||
            header->uncompressed_size > max_size - size) {
            return {.status = BlockStatus::bad_header};
        }
        ends.push_back(size += header->uncompressed_size);
        content.num_stored += header->payload_size;
    }
    content.bytes = LargeVector<std::uint8_t>(size);
    std::vector<BlockStatus> statuses(blocks.size());
    parallel_for_all(blocks.size(), num_threads, [&](std::size_t number) {
        const BlockHeader header = *parse_block_header(blocks[number]);
        const auto of_block =
            MutableBytes(content.bytes)
                .subspan(ends[number] - header.uncompressed_size, header.uncompressed_size);
        statuses[number] = decode_block(header, blocks[number], true, of_block);
    });
    const auto damaged = std::find_if(statuses.begin(), statuses.end(),
                                      [](BlockStatus each) { return each != BlockStatus::ok; });
    return damaged == statuses.end() ? std::move(content) : SectionContent{.status = *damaged};
}

PartHeads::FetchedHeads::Head checked_head(Bytes bytes) {
    const std::optional<BlockHeader> header = parse_block_header(bytes);
    if (!header || header->codec != Codec::head) {
        return {.status = BlockStatus::bad_header};
    }
    if (const BlockStatus status = check_block(*header, bytes); status != BlockStatus::ok) {
        return {.status = status};
    }
    return {bytes.subspan(kBlockHeaderSize), header->uncompressed_size};
}

}  // namespace

PartHeads::PartHeads(std::vector<SegmentHeads> segments, SectionBlocks dictionary, Fetch fetch,
                     std::uint64_t capacity, unsigned num_threads)
    : segments_(std::move(segments)),
      dictionary_blocks_(std::move(dictionary)),
      fetch_(std::move(fetch)),
      capacity_(capacity),
      num_threads_(num_threads) {
    for (std::size_t number = 0; number < segments_.size(); ++number) {
        words_.push_back(std::make_unique<Words>());
    }
}

std::optional<PartHeads::Part> PartHeads::part_of(std::uint64_t block) const {
    const auto segment =
        std::find_if(segments_.begin(), segments_.end(), [&](const SegmentHeads& each) {
            return !each.first_blocks.empty() && block < each.first_blocks.back();
        });
    if (segment == segments_.end() || block < segment->first_blocks.front()) {
        return std::nullopt;
    }
    const auto& starts = segment->first_blocks;
    const auto part = static_cast<std::size_t>(
        std::upper_bound(starts.begin(), starts.end(), block) - starts.begin() - 1);
    if (segment->head_sizes[part] == 0 && segment->uses_dictionary[part] == 0) {
        return std::nullopt;
    }
    return Part{static_cast<std::size_t>(segment - segments_.begin()), part, starts[part]};
}

std::uint64_t PartHeads::first_block_of(std::uint64_t block) const {
    const std::optional<Part> part = part_of(block);
    return part ? part->first_block : block;
}

PartHeads::Opened PartHeads::open(std::uint64_t block) {
    const std::optional<Part> part = part_of(block);
    return part ? open_part(*part) : Opened{};
}

std::vector<PartHeads::Opened> PartHeads::open_all(std::span<const std::uint64_t> blocks) {
    std::vector<Part> parts;                // each once, if the blocks ascend
    std::vector<std::size_t> part_indexes;  // by block; blocks.size() for none
    for (const std::uint64_t block : blocks) {
        const std::optional<Part> part = part_of(block);
        if (part && (parts.empty() || parts.back().first_block != part->first_block)) {
            parts.push_back(*part);
        }
        part_indexes.push_back(part ? parts.size() - 1 : blocks.size());
    }
    std::vector<Opened> opened(parts.size());
    parallel_for_all(parts.size(), num_threads_,
                     [&](std::size_t index) { opened[index] = open_part(parts[index]); });
    std::vector<Opened> of_blocks;
    of_blocks.reserve(blocks.size());
    for (const std::size_t index : part_indexes) {
        of_blocks.push_back(index != blocks.size() ? opened[index] : Opened{});
    }
    return of_blocks;
}

PartHeads::Range PartHeads::unread_head(std::uint64_t block) {
    const std::optional<Part> part = part_of(block);
    if (!part || segments_[part->segment].uses_dictionary[part->number] != 0 || kept(*part)) {
        return {};
    }
    const SegmentHeads& segment = segments_[part->segment];
    const std::uint32_t size = segment.head_sizes[part->number];
    return size <= kMaxHeadSize ? Range{segment.head_offsets[part->number], size} : Range{};
}

PartHeads::Opened PartHeads::open_part(const Part& part) {
    if (segments_[part.segment].uses_dictionary[part.number] != 0) {
        return dictionary();
    }
    if (auto symbols = kept(part)) {
        return {std::move(symbols)};
    }
    Opened opened = read(part);
    if (opened.symbols) {
        keep(part.first_block, opened.symbols);
    }
    return opened;
}

PartHeads::FetchedHeads PartHeads::fetch_heads(std::size_t segment_number, std::size_t first,
                                               std::size_t end) const {
    const auto& offsets = segments_[segment_number].head_offsets;
    const auto& sizes = segments_[segment_number].head_sizes;
    FetchedHeads fetched;
    if (sizes[first] > kMaxHeadSize) {
        fetched.heads.push_back({.status = BlockStatus::bad_header});
        return fetched;
    }
    std::uint64_t size = sizes[first];
    std::size_t part = first + 1;
    for (; part < end && sizes[part] != 0 && size + sizes[part] <= kMaxRunSize; ++part) {
        const std::uint64_t begin = offsets[part] - offsets[first];
        if (begin < size || begin - size >= kHeadAlignment) {
            break;
        }
        size = begin + sizes[part];
    }
    fetched.bytes = fetch_(offsets[first], size);
    for (std::size_t number = first; number < part; ++number) {
        const Bytes rest =
            Bytes(fetched.bytes)
                .subspan(std::min(fetched.bytes.size(), offsets[number] - offsets[first]));
        fetched.heads.push_back(
            checked_head(rest.first(std::min<std::size_t>(rest.size(), sizes[number]))));
    }
    return fetched;
}

PartHeads::Opened PartHeads::read(const Part& part) {
    const FetchedHeads fetched = fetch_heads(part.segment, part.number, part.number + 1);
    const FetchedHeads::Head& head = fetched.heads.front();
    if (head.status != BlockStatus::ok) {
        return {nullptr, head.status};
    }
    auto symbols = read_symbols(head.payload, words(part.segment), head.pool_size);
    if (!symbols) {
        return {nullptr, BlockStatus::bad_payload};
    }
    return {std::make_shared<const SymbolTable>(std::move(*symbols))};
}

const WordSection& PartHeads::words(std::size_t number) {
    Words& words = *words_.at(number);
    std::call_once(words.is_read, [&] { words.section = read_words(segments_[number].words); });
    return words.section;
}

WordSection PartHeads::read_words(const SectionBlocks& section) const {
    const unsigned num_threads = std::min(num_threads_, kMaxThreads);
    const SectionContent content =
        read_section(section, fetch_, std::numeric_limits<std::uint64_t>::max(), num_threads);
    try {
        return content.bytes.empty()
                   ? WordSection()
                   : WordSection(content.bytes,
                                 kMaxWordExpansion * content.num_stored + kMinWordBytes,
                                 num_threads);
    } catch (const std::invalid_argument&) {
        return {};
    }
}

PartHeads::Opened PartHeads::dictionary() {
    std::call_once(dictionary_is_read_, [&] { dictionary_ = read_dictionary(); });
    return dictionary_;
}

// An archive that has no dictionary counts as one with a damaged dictionary.
PartHeads::Opened PartHeads::read_dictionary() const {
    const SectionContent content =
        read_section(dictionary_blocks_, fetch_, kMaxDictionarySize, num_threads_);
    if (content.bytes.empty()) {
        return {nullptr,
                content.status == BlockStatus::ok ? BlockStatus::bad_header : content.status};
    }
    return {dictionary_table(content.bytes)};
}

std::shared_ptr<const SymbolTable> PartHeads::kept(const Part& part) {
    const std::lock_guard lock(mutex_);
    const auto found = entries_.find(part.first_block);
    if (found == entries_.end()) {
        return nullptr;
    }
    uses_.splice(uses_.begin(), uses_, found->second.use);
    return found->second.symbols;
}

void PartHeads::keep(std::uint64_t key, const std::shared_ptr<const SymbolTable>& symbols) {
    const std::lock_guard lock(mutex_);
    if (entries_.contains(key)) {
        return;  // another thread was faster
    }
    uses_.push_front(key);
    entries_.emplace(key, Entry{symbols, uses_.begin()});
    size_ += symbols->size_in_memory();
    while (size_ > capacity_ && entries_.size() > 1) {
        const auto last = entries_.find(uses_.back());
        size_ -= last->second.symbols->size_in_memory();
        entries_.erase(last);
        uses_.pop_back();
    }
}

}  // namespace gompfs
