// Merges a whole index with changes; see changes.h.
#include <algorithm>
#include <deque>
#include <tuple>

#include "index/changes.h"
#include "index/index_rows.h"

namespace gompfs {
namespace {

// Which index owns an inode that changes mention.
struct Owner {
    std::uint64_t ino;
    std::size_t source;
    bool is_removed;
};

// Finds owners of ascending inode numbers.
class Owners {
  public:
    explicit Owners(const std::vector<Owner>& owners)
        : next_(owners.data()), end_(owners.data() + owners.size()) {}

    // Returns whether rows of an inode count that the index of a number has.
    bool takes(std::uint64_t ino, std::size_t source) {
        while (next_ != end_ && next_->ino < ino) {
            ++next_;
        }
        const bool is_mentioned = next_ != end_ && next_->ino == ino;
        const std::size_t owner = is_mentioned ? next_->source : 0;
        if (owner < source || (owner == source && is_mentioned && next_->is_removed)) {
            fail_index("changes have rows of an inode that is not among their inodes");
        }
        return owner == source;
    }

  private:
    const Owner* next_;
    const Owner* end_;
};

std::vector<Owner> owners_of(const std::deque<IndexColumns>& indexes) {
    std::vector<Owner> mentions;
    for (std::size_t source = 1; source < indexes.size(); ++source) {
        InodeRows inodes(indexes[source]);
        for (InodeRow row{}; inodes.next(row);) {
            mentions.push_back({row.ino, source, false});
        }
        RemovedInodeRows removed(indexes[source]);
        for (std::uint64_t ino = 0; removed.next(ino);) {
            mentions.push_back({ino, source, true});
        }
    }
    std::ranges::sort(mentions, [](const Owner& one, const Owner& other) {
        return std::tuple(one.ino, other.source) < std::tuple(other.ino, one.source);
    });
    std::vector<Owner> owners;  // the newest mention of each inode
    const Owner* last = nullptr;
    for (const Owner& mention : mentions) {
        if (last == nullptr || last->ino != mention.ino) {
            owners.push_back(mention);
        } else if (last->source == mention.source) {
            fail_index("changes both have and remove an inode");
        }
        last = &mention;
    }
    return owners;
}

std::uint64_t key_of(const InodeRow& row) { return row.ino; }
std::uint64_t key_of(std::uint64_t ino) { return ino; }
auto key_of(const ExtentRow& row) { return std::tuple(row.ino, row.file_offset); }
auto key_of(const XattrRow& row) { return std::tuple(row.ino, row.name); }
auto key_of(const SectionRow& row) { return std::tuple(row.segment, row.kind); }
auto key_of(const EntryRow& row) { return std::tuple(row.parent, row.name); }

std::uint64_t ino_of(std::uint64_t ino) { return ino; }
template <typename Row>
std::uint64_t ino_of(const Row& row) {
    return row.ino;
}

// The rows of a table in one index, those of other owners left out.
template <typename Row, typename Rows>
class OwnedRows {
  public:
    OwnedRows(const IndexColumns& columns, std::size_t source, const std::vector<Owner>& owners)
        : rows_(columns), owners_(owners), source_(source) {}

    bool next() {
        while (rows_.next(row)) {
            if (owners_.takes(ino_of(row), source_)) {
                return true;
            }
        }
        return false;
    }

    Row row{};

  private:
    Rows rows_;
    Owners owners_;
    std::size_t source_;
};

// The sections of one index.
struct SectionsOf {
    explicit SectionsOf(const IndexColumns& columns) : rows(columns) {}

    bool next() { return rows.next(row); }

    SectionRows rows;
    SectionRow row{};
};

// The names that one index has and removes. Newer indexes come first among equal names.
class NamesOf {
  public:
    NamesOf(const IndexColumns& columns, std::size_t source)
        : entries_(columns), removed_(columns), source_(source) {
        has_entry_ = entries_.next(entry_);
        has_name_ = removed_.next(name_);
    }

    bool next() {
        if (!has_entry_ && !has_name_) {
            return false;
        }
        is_removed =
            !has_entry_ || (has_name_ && std::tuple(name_.parent, name_.name) < key_of(entry_));
        if (is_removed) {
            row = {name_.parent, 0, name_.name};
            has_name_ = removed_.next(name_);
            return true;
        }
        if (has_name_ && std::tuple(name_.parent, name_.name) == key_of(entry_)) {
            fail_index("changes both have and remove a name");
        }
        row = entry_;
        has_entry_ = entries_.next(entry_);
        return true;
    }
    std::size_t source() const { return source_; }

    EntryRow row{};
    bool is_removed = false;

  private:
    EntryRows entries_;
    RemovedNameRows removed_;
    std::size_t source_;
    EntryRow entry_{};
    NameRow name_{};
    bool has_entry_, has_name_;
};

template <typename Stream>
bool is_after(const Stream* one, const Stream* other) {
    if constexpr (requires { one->source(); }) {
        return std::tuple(key_of(one->row), other->source()) >
               std::tuple(key_of(other->row), one->source());
    } else {
        return key_of(one->row) > key_of(other->row);
    }
}

// Calls `take` with each row of sorted streams, in the order of their keys.
template <typename Stream, typename Take>
void merge(std::deque<Stream>& streams, const Take& take) {
    std::vector<Stream*> heap;
    for (Stream& stream : streams) {
        if (stream.next()) {
            heap.push_back(&stream);
        }
    }
    std::ranges::make_heap(heap, is_after<Stream>);
    while (!heap.empty()) {
        std::ranges::pop_heap(heap, is_after<Stream>);
        Stream* const first = heap.back();
        heap.pop_back();
        bool has_row = true;
        // Most rows of the whole index have no other row before the next one.
        do {
            take(*first);
            has_row = first->next();
        } while (has_row && (heap.empty() || !is_after(first, heap.front())));
        if (has_row) {
            heap.push_back(first);
            std::ranges::push_heap(heap, is_after<Stream>);
        }
    }
}

class Merger {
  public:
    explicit Merger(std::span<const Bytes> columns) {
        for (const Bytes each : columns) {
            indexes_.emplace_back(each, indexes_.empty() ? IndexKind::whole : IndexKind::changes);
        }
        owners_ = owners_of(indexes_);
    }

    std::vector<std::uint8_t> merge_all() {
        for (const IndexColumns& index : indexes_) {
            MetaRows facts(index);  // of all indexes, so that all are checked
            for (MetaRow row{}; facts.next(row);) {
                if (&index == &indexes_.back()) {
                    writer_.add(row);
                }
            }
        }
        merge_owned<InodeRow, InodeRows>([&](const InodeRow& row) { writer_.add(row); });
        merge_names();
        merge_owned<ExtentRow, ExtentRows>([&](const ExtentRow& row) { writer_.add(row); });
        merge_owned<XattrRow, XattrRows>([&](const XattrRow& row) { writer_.add(row); });
        append_all<SegmentRow, SegmentRows>();
        merge_sections();
        merge_owned<std::uint64_t, BinaryFileRows>(
            [&](std::uint64_t ino) { writer_.add_binary_file(ino); });
        append_all<GenerationRow, GenerationRows>();
        return std::move(writer_.finish(IndexKind::whole).bytes);
    }

  private:
    // Adds the rows of a table in which later indexes continue the earlier ones.
    template <typename Row, typename Rows>
    void append_all() {
        for (const IndexColumns& index : indexes_) {
            Rows rows(index);
            for (Row row{}; rows.next(row);) {
                writer_.add(row);
            }
        }
    }

    template <typename Row, typename Rows, typename Add>
    void merge_owned(const Add& add) {
        std::deque<OwnedRows<Row, Rows>> streams;
        for (std::size_t source = 0; source < indexes_.size(); ++source) {
            streams.emplace_back(indexes_[source], source, owners_);
        }
        merge(streams, [&](const OwnedRows<Row, Rows>& stream) { add(stream.row); });
    }

    void merge_names() {
        std::deque<NamesOf> streams;
        for (std::size_t source = 0; source < indexes_.size(); ++source) {
            streams.emplace_back(indexes_[source], source);
        }
        EntryRow last{};
        bool has_last = false;
        merge(streams, [&](const NamesOf& stream) {
            if (has_last && key_of(last) == key_of(stream.row)) {
                return;  // a newer index has this name
            }
            last = stream.row;
            has_last = true;
            if (!stream.is_removed) {
                writer_.add(stream.row);
            }
        });
    }

    void merge_sections() {
        std::deque<SectionsOf> streams;
        for (const IndexColumns& index : indexes_) {
            streams.emplace_back(index);
        }
        SectionRow last{};
        bool has_last = false;
        merge(streams, [&](const SectionsOf& stream) {
            if (has_last && key_of(last) == key_of(stream.row)) {
                fail_index("changes have a section that is there already");
            }
            last.segment = stream.row.segment;
            last.kind = stream.row.kind;
            has_last = true;
            writer_.add(stream.row);
        });
    }

    std::deque<IndexColumns> indexes_;
    std::vector<Owner> owners_;
    ColumnsWriter writer_;
};

}  // namespace

std::vector<std::uint8_t> merge_columns(std::span<const Bytes> columns) {
    return Merger(columns).merge_all();
}

}  // namespace gompfs
