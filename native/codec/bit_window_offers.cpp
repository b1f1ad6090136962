// Offers matches to the positions where they may end; see bit_window_parser.h. A match is offered
// after the cheapest way to its start; the position keeps it if that is the cheapest way to it.
#include <algorithm>
#include <cstring>

#include "codec/bit_window_parser.h"
#include "codec/match_length.h"

namespace gompfs {

// Whether a match that begins at a position may be cheaper than what was offered to some position.
bool BitWindowParser::worth_offering(std::uint32_t position) {
    const std::int32_t way = least_cost_ + literals_cost(position);
    const auto is_worth = [&](const FoundMatch& match) {
        return is_worth_offering(position, match, way);
    };
    return std::ranges::any_of(matches_->at(position), is_worth) ||
           std::ranges::any_of(matches_->from_dictionary(position), is_worth);
}

bool BitWindowParser::is_worth_offering(std::uint32_t position, const FoundMatch& match,
                                        std::int32_t way) {
    const std::uint32_t length = std::min(match.length, end_ - position);
    const std::int32_t cost = way + offset_cost(match.offset);
    static_assert(kMaxUseless == 2);
    return may_be_cheaper(position, length, cost) || may_be_cheaper(position, length - 1, cost);
}

bool BitWindowParser::may_be_cheaper(std::uint32_t position, std::uint32_t length,
                                     std::int32_t cost) {
    return length >= kMinMatch &&
           any(at(position + length).cost > cost + least_token_cost_[kMatchClassOf[length]]);
}

// The cost of the cheapest ways to the end of a match of a class, without the cost of its offset,
// by the phase after the match.
const Lanes& BitWindowParser::cheapest(int match_class) {
    Lanes& result = cheapest_[match_class];
    if ((has_cheapest_ >> match_class & 1) == 0) {
        has_cheapest_ |= 1u << match_class;
        const auto& token_cost = token_cost_[match_class];
        result = way_cost_[0] + token_cost[0];
        for (int literal_class = 1; literal_class < kNumLiteralClasses; ++literal_class) {
            result = lower(result, way_cost_[literal_class] + token_cost[literal_class]);
        }
        result = __builtin_shufflevector(result, result, 3, 0, 1, 2);
    }
    return result;
}

// Offers the matches that begin at a position to the positions where they may end.
void BitWindowParser::offer_matches(std::uint32_t position) {
    std::size_t num_legal = 0;
    std::uint32_t longest = kMinMatch - 1;
    for (const FoundMatch& match : matches_->at(position)) {
        const std::uint32_t length = std::min(match.length, end_ - position);
        if (length <= longest) {
            continue;
        }
        if (position - match.offset + length <= final_below_ || !has_rule_) {
            legal_[num_legal++] = {match.offset, length};
            longest = length;
        } else {
            offer_near(position, {match.offset, length});
        }
    }
    // Each match takes the lengths that no nearer match has, and all lengths of nearer matches that
    // cost more.
    std::uint32_t offset = 0;
    std::int32_t cost = kUnreachable;
    for (std::size_t index = num_legal; index-- > 0;) {
        const FoundMatch& match = legal_[index];
        const std::int32_t match_cost = offset_cost(match.offset);
        offset = match_cost <= cost ? match.offset : offset;
        cost = std::min(match_cost, cost);
        const std::uint32_t nearer_length = index == 0 ? kMinMatch - 1 : legal_[index - 1].length;
        offer_lengths(position, nearer_length + 1, match.length, offset, cost);
    }
    offer_from_dictionary(position);
}

// Offers each match from the dictionary for the lengths that the ones before it do not have. These
// have lower addresses.
void BitWindowParser::offer_from_dictionary(std::uint32_t position) {
    std::uint32_t candidate = kFirstCandidate;
    std::uint32_t shorter = kHashedLength - 1;
    for (const FoundMatch& match : matches_->from_dictionary(position)) {
        const std::uint32_t length = std::min(match.length, end_ - position);
        offer_lengths(position, shorter + 1, length, candidate++, offset_cost(match.offset));
        shorter = length;
    }
}

void BitWindowParser::offer_lengths(std::uint32_t position, std::uint32_t first, std::uint32_t last,
                                    std::uint32_t offset, std::int32_t cost) {
    int num_useless = 0;
    for (std::uint32_t length = last; length >= first && num_useless < kMaxUseless; --length) {
        States& target = at(position + length);
        const Lanes& way = cheapest(kMatchClassOf[length]);
        const Lanes total = (way >> kClassShift) + cost;
        const Lanes link = (way & kClassMask) | pack_link(length, offset);
        const Lanes cheaper = total < target.cost;
        target.cost = cheaper ? total : target.cost;
        target.link = cheaper ? link : target.link;
        num_useless += !any(cheaper);
    }
}

// Offers a match whose source may reach into the open group: for the best way of each phase, the
// part that is legal for that way.
void BitWindowParser::offer_near(std::uint32_t position, const FoundMatch& match) {
    const Lanes ways = cheapest(kMatchClassOf[match.length]);
    const std::int32_t cost = offset_cost(match.offset);
    for (std::uint32_t phase = 0; phase < kNumPhases; ++phase) {
        const std::uint32_t next = phase_after(phase);
        if (ways[next] >= kUnreachable << kClassShift) {
            continue;
        }
        const auto literal_class = static_cast<std::uint32_t>(ways[next] & kClassMask);
        const std::uint32_t node = position - literal_length(position, phase, literal_class);
        std::uint32_t length =
            legal_length(node, phase, position - match.offset, position, match.length);
        for (int num_useless = 0; length >= kMinMatch && num_useless < kMaxUseless; --length) {
            const std::int32_t way =
                way_cost_[literal_class][phase] + token_cost_[kMatchClassOf[length]][literal_class];
            const std::int32_t total = (way >> kClassShift) + cost;
            States& target = at(position + length);
            if (total < target.cost[next]) {
                target.cost[next] = total;
                target.link[next] = pack_link(length, match.offset) | (way & kClassMask);
            } else {
                ++num_useless;
            }
        }
    }
}

// Offers, after the states of a position, a few literals and then a match with the last offset
// again.
void BitWindowParser::offer_repeats(std::uint32_t node) {
    if (end_ - node < sizeof(std::uint64_t)) {
        return;
    }
    const States& here = at(node);
    std::uint32_t offset = 0;
    std::uint32_t num_literals = 0;
    for (std::uint32_t phase = 0; phase < kNumPhases; ++phase) {
        if (here.cost[phase] == kUnreachable) {
            continue;
        }
        if (row_last_offset(here.row[phase]) != offset) {
            offset = row_last_offset(here.row[phase]);
            num_literals = offset == 0 ? 0 : literals_before_repeat(node, offset);
        }
        if (num_literals != 0) {
            offer_repeat(node, phase, offset, num_literals);
        }
    }
}

// The number of literals before a match with the last offset; 0 if there are too many.
std::uint32_t BitWindowParser::literals_before_repeat(std::uint32_t node,
                                                      std::uint32_t offset) const {
    const std::uint8_t* const bytes = content_.data() + node;
    const std::uint64_t differs = load<std::uint64_t>(bytes) ^ load<std::uint64_t>(bytes - offset);
    if ((differs & 255) == 0) {
        return 0;  // the match before could have been longer
    }
    const std::uint64_t one_of_three_differs = differs | differs >> 8 | differs >> 16;
    for (int num_literals = 1; num_literals < kFirstWideClass; ++num_literals) {
        if ((one_of_three_differs >> 8 * num_literals & 255) == 0) {
            return static_cast<std::uint32_t>(num_literals);
        }
    }
    return 0;
}

void BitWindowParser::offer_repeat(std::uint32_t node, std::uint32_t phase, std::uint32_t offset,
                                   std::uint32_t num_literals) {
    const std::uint32_t position = node + num_literals;
    const std::uint32_t source = position - offset;
    const std::uint32_t same =
        common_length(content_.data() + source, content_.data() + position,
                      std::min<std::uint32_t>(end_ - position, kBitMaxMatchLength));
    const std::uint32_t next = phase_after(phase);
    const std::int32_t way =
        at(node).cost[phase] + literals_cost(position) + costs_->offset[kOffsetSymbolRepeat];
    const std::int32_t* const token_cost = &costs_->token[num_literals * kNumMatchClasses];
    for (std::uint32_t length = legal_length(node, phase, source, position, same);
         length >= kMinMatch; --length) {
        const std::int32_t total = way + token_cost[kMatchClassOf[length]];
        States& target = at(position + length);
        if (total >= target.cost[next]) {
            return;
        }
        target.cost[next] = total;
        target.link[next] = pack_link(length, offset) | static_cast<std::int32_t>(num_literals);
    }
}

// The length of a match at `position` that may be copied from `source`, after a state at `node` and
// literals: up to the next match of the open group.
std::uint32_t BitWindowParser::legal_length(std::uint32_t node, std::uint32_t phase,
                                            std::uint32_t source, std::uint32_t position,
                                            std::uint32_t length) {
    const auto high_water_mark = static_cast<std::uint32_t>(at(node).high_water_mark[phase]);
    if (!has_rule_ || source + length <= high_water_mark) {
        return length;
    }
    std::uint32_t legal_end = std::min(source + length, position);
    for (; phase > 0 && source < node; --phase) {
        const auto link = static_cast<std::uint32_t>(at(node).link[phase]);
        const std::uint32_t match_begin = node - link_match_length(link);
        if (source >= match_begin) {
            return 0;
        }
        legal_end = match_begin < node ? std::min(legal_end, match_begin) : legal_end;
        node = match_begin - literal_length(match_begin, phase - 1, link_literal_class(link));
    }
    return legal_end - source;
}

}  // namespace gompfs
