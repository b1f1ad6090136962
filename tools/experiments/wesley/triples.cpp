// The serial encoder and decoder of triples, see __init__.py. Built as a shared library by
// serial.py.
#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace {

constexpr std::size_t kWindow = 256;  // distances and lengths are below it
constexpr std::size_t kMinLength = 2;

struct Match {
    std::size_t length, distance;
};

// The longest match of at most `limit` bytes, and the farthest of these.
Match find_match(const std::uint8_t* text, std::size_t position, std::size_t limit) {
    Match best{kMinLength - 1, 0};
    for (std::size_t distance = std::min(kWindow - 1, position);
         distance != 0 && best.length < limit; --distance) {
        const std::uint8_t* const source = text + position - distance;
        if (source[best.length] != text[position + best.length]) {
            continue;
        }
        std::size_t length = 0;
        while (length < limit && source[length] == text[position + length]) {
            ++length;
        }
        if (length > best.length) {
            best = {length, distance};
        }
    }
    return best;
}

}  // namespace

// Writes the triples of a text to `triples`, which has space for one per two bytes, rounded up.
// Returns their number.
extern "C" std::size_t encode_triples(const std::uint8_t* text, std::size_t size,
                                      std::uint8_t* triples) {
    std::size_t count = 0;
    for (std::size_t position = 0; position < size; ++count) {
        std::uint8_t* const triple = triples + 3 * count;
        // A byte follows each match.
        const Match match = find_match(text, position, std::min(kWindow - 1, size - position - 1));
        if (match.distance != 0) {
            triple[0] = static_cast<std::uint8_t>(match.distance);
            triple[1] = static_cast<std::uint8_t>(match.length);
            triple[2] = text[position + match.length];
            position += match.length + 1;
        } else {
            triple[0] = 0;
            triple[1] = position + 1 < size ? text[position + 1] : 0;
            triple[2] = text[position];
            position += 2;
        }
    }
    return count;
}

// Decodes triples into `size` bytes. Returns whether they are valid: whether no match leads before
// the text, and whether they stand for `size` bytes or one more.
extern "C" bool decode_triples(const std::uint8_t* triples, std::size_t count, std::uint8_t* text,
                               std::size_t size) {
    std::size_t position = 0;
    for (std::size_t index = 0; index < count; ++index) {
        const std::size_t distance = triples[3 * index], second = triples[3 * index + 1];
        const std::uint8_t value = triples[3 * index + 2];
        if (distance > position || position >= size) {
            return false;
        }
        if (distance == 0) {
            text[position++] = value;
            if (position < size) {
                text[position] = static_cast<std::uint8_t>(second);
            }
            ++position;
            continue;
        }
        if (second + 1 > size - position) {
            return false;
        }
        for (std::size_t done = 0; done < second; ++done, ++position) {
            text[position] = text[position - distance];
        }
        text[position++] = value;
    }
    return position == size || position == size + 1;
}
