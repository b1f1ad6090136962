// Cuts text into parts; see text_collector.h.
#include "grammar/text_collector.h"

#include <algorithm>
#include <stdexcept>
#include <string>
#include <utility>

namespace gompfs {
namespace {

// Parts four times as large make the section 2% smaller, but the build takes 20% longer because its
// data does not fit into the processor's caches.
constexpr std::size_t kPartSize = 8 << 20;
constexpr std::size_t kMinCutDistance = 1 << 20;
constexpr std::size_t kMaxFilesOfPart = 1 << 20;

}  // namespace

void TextCollector::require(bool in_file) const {
    if (in_file != in_file_ || closed_) {
        throw std::logic_error(
            "files must be added one after another, before the grammar is finished");
    }
}

void TextCollector::begin_file(std::uint64_t ino) {
    require(false);
    in_file_ = true;
    if (text_->bytes.size() >= kPartSize || text_->inos.size() >= kMaxFilesOfPart) {
        pass_on();
    }
    text_->inos.push_back(ino);
    text_->bytes.reserve(kPartSize + kMinCutDistance);
    search_from(text_->bytes.size());
}

void TextCollector::add_bytes(std::string_view bytes) {
    require(true);
    while (!bytes.empty()) {
        const std::size_t size = std::min(bytes.size(), next_cut_ - text_->bytes.size());
        text_->bytes.insert(text_->bytes.end(), bytes.begin(),
                            bytes.begin() + static_cast<std::ptrdiff_t>(size));
        bytes.remove_prefix(size);
        if (text_->bytes.size() == next_cut_) {
            cut_file();
        }
    }
}

void TextCollector::end_file() {
    require(true);
    in_file_ = false;
    text_->ends.push_back(text_->bytes.size());
}

// Sets the size of the text at which the present file is cut next. It depends on the text alone,
// not on the pieces in which the text arrives.
void TextCollector::search_from(std::size_t size) {
    searched_ = size;
    next_cut_ = std::max(kPartSize, size + kMinCutDistance);
}

// Passes on the text up to the last position after a complete word of the present file.
void TextCollector::cut_file() {
    const std::string_view fresh = text_->view().substr(searched_);
    const std::size_t complete = searched_ + tokenizer_.complete_prefix(fresh);
    if (complete == searched_) {
        search_from(text_->bytes.size());
        return;
    }
    const std::uint64_t ino = text_->inos.back();
    const std::string rest(text_->view().substr(complete));
    text_->bytes.resize(complete);
    text_->ends.push_back(complete);
    pass_on();
    text_->continues = true;
    text_->inos.push_back(ino);
    text_->bytes.assign(rest.begin(), rest.end());
    search_from(rest.size());
}

void TextCollector::pass_on() { take_(std::exchange(text_, std::make_unique<PartText>())); }

void TextCollector::flush() {
    require(false);
    if (!text_->inos.empty()) {
        pass_on();
    }
}

}  // namespace gompfs
