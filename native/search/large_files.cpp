// Searches large files that follow each other; see large_files.h.
#include "search/large_files.h"

#include <utility>

#include "common/failures.h"
#include "search/file_search.h"

namespace gompfs::search {
namespace {

constexpr std::size_t kAheadOfThread = 4 << 20;  // bytes of pieces that were not taken
constexpr std::size_t kPieceOfOutput = 1 << 20;
constexpr auto kBetweenResults = std::chrono::milliseconds(10);

}  // namespace

bool LargeFiles::has_room() const { return num_bytes_ < kAheadOfThread * search_.num_threads; }

std::shared_ptr<LargeFiles::File> LargeFiles::open(const ListedFile& listed) {
    const LayoutView layout = search_.files.layout(listed);
    search_.reader.layouts.add({{listed.ino, layout.copy()}});
    auto file = std::make_shared<File>(listed);
    file->sink =
        make_sink(search_.options, kPieceOfOutput, [this, &file = *file] { hand_on(file); });
    const auto read = [this, ino = listed.ino](std::uint64_t offset, MutableBytes out) {
        return search_.reader.decode_into(ino, offset, out, 1, true);
    };
    LargeFileSearch::File searched{
        search_.files.path(listed),
        layout,
        nul_meaning(search_.options, listed.is_root()),
        search_.reader.block_size(),
        search_.scanned == nullptr ? std::nullopt : search_.scanned->blocks_of(layout),
        file->record.get()};
    file->search = std::make_unique<LargeFileSearch>(search_.options, search_.matcher, *file->sink,
                                                     memory_, std::move(searched), read);
    return file;
}

std::unique_ptr<LargeFiles::Item> LargeFiles::make() {
    for (;;) {
        if (last_) {
            if (std::unique_ptr<TextPiece> piece = last_->search->next_piece()) {
                const std::size_t num_bytes = piece->num_bytes();
                num_bytes_ += num_bytes;
                return std::make_unique<Item>(last_, std::move(piece), num_bytes);
            }
        }
        if (next_ == end_) {
            return nullptr;
        }
        last_ = open(search_.files[next_++]);
    }
}

void LargeFiles::work(Item& item) {
    std::unique_ptr<MatchSession> session =
        sessions_.take([this] { return std::make_unique<MatchSession>(search_.matcher); });
    item.file->search->search(*item.piece, *session);
    sessions_.give_back(std::move(session));
    num_bytes_ += item.piece->num_bytes() - item.num_bytes;
    item.num_bytes = item.piece->num_bytes();
}

void LargeFiles::take(std::unique_ptr<Item> item) {
    File& file = *item->file;
    num_bytes_ -= item->num_bytes;
    if (file.search->has_ended()) {
        return;
    }
    try {
        file.search->take(std::move(item->piece));
        if (file.search->has_ended()) {
            file.result.totals.add(file.search->counts());
            const LayoutView layout = search_.files.layout(file.listed);
            if (ContentCache::is_for(layout)) {
                search_.contents.add({layout, file.listed.is_root()}, file.record);
            }
        }
    } catch (const ReadFailed& error) {
        file.result.found.failed.push_back(
            {search_.files.path(file.listed), file.listed.ino, error.failure});
        file.search->stop();
    } catch (const SearchError& error) {
        file.result.found.failed.push_back(
            {search_.files.path(file.listed), file.listed.ino, {}, error.what()});
        file.search->stop();
    }
    if (file.search->has_ended() || Clock::now() - handed_on_ > kBetweenResults) {
        hand_on(file);
    }
}

void LargeFiles::hand_on(File& file) {
    file.result.take_output(*file.sink);
    yield_(std::exchange(file.result, {}));
    handed_on_ = Clock::now();
}

}  // namespace gompfs::search
