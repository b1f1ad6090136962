// Cuts text into parts; see part_collector.h.
#include "text/part_collector.h"

#include <algorithm>
#include <utility>

namespace gompfs {

void PartCollector::add_bytes(std::string_view bytes) {
    // Whole parts of a long piece are passed on without a copy of all of it.
    while (!bytes.empty()) {
        const std::string_view next = bytes.substr(0, part_size_);
        if (part_.text.empty()) {
            part_.text.reserve(part_size_ + part_size_ / 8);  // growing would copy it several times
        }
        part_.text.append(next);
        bytes.remove_prefix(next.size());
        cut_off_full_parts(false);
    }
}

// The size of the text at which the part is full.
std::size_t PartCollector::limit() const {
    return std::min(part_size_ + 2 * repeated_.num_bytes(), max_part_size_);
}

void PartCollector::cut_off_full_parts(bool is_end) {
    do {
        // Up to the limit, which grows meanwhile.
        while (repeated_.scanned() <= limit() && repeated_.scanned() < part_.text.size()) {
            const std::size_t before = repeated_.scanned();
            repeated_.scan(part_.text, limit() + 1, is_end);
            if (repeated_.scanned() == before) {
                return;
            }
        }
    } while (repeated_.scanned() > limit() && cut());
}

void PartCollector::end_file() {
    cut_off_full_parts(true);
    if (part_.text.size() != file_start_) {
        pieces_.push_back({file_, part_.number, file_start_, part_.text.size() - file_start_});
        part_.file_ends.push_back(part_.text.size());
        file_start_ = part_.text.size();
    }
    ++file_;
    if (part_.text.size() >= limit()) {
        flush();
    }
}

void PartCollector::flush() {
    if (!part_.text.empty()) {
        pass_on(part_.text.size());
    }
}

// Passes on a part of the text, which is too long for one. Returns false if there is no position
// for a cut.
bool PartCollector::cut() {
    // A file that would put little into this part begins in the next one.
    if (file_start_ >= limit() - part_size_ / 8) {
        pass_on(file_start_);
        return true;
    }
    std::size_t end = last_word_start();
    if (end == 0) {
        // A token is longer than a part. The part ends at the first position after it.
        const std::size_t from = std::max(searched_, limit());
        end = tokenizer_.next_word_start(part_.text, from);
        if (end == part_.text.size()) {
            searched_ = end;
            return false;
        }
    }
    pass_on(end);
    return true;
}

// The last position in the present file, and below the limit, at which a word begins; or the
// beginning of the file if there is none.
std::size_t PartCollector::last_word_start() const {
    std::size_t end = limit();
    while (end > file_start_ && !tokenizer_.begins_word(part_.text, end)) {
        --end;
    }
    return end;
}

void PartCollector::pass_on(std::size_t size) {
    if (file_start_ < size) {
        pieces_.push_back({file_, part_.number, file_start_, size - file_start_});
    }
    CollectedPart next;
    next.number = part_.number + 1;
    next.text = part_.text.substr(size);
    part_.text.resize(size);
    file_start_ = searched_ = 0;
    repeated_.clear();
    take_(std::exchange(part_, std::move(next)));
}

}  // namespace gompfs
