// See line_table.h.
#include "statistics/line_table.h"

#include <algorithm>
#include <utility>

#include "common/utf8.h"

namespace gompfs {
namespace {

// A batch has two of them at most, four times as long as \xHH: less than 32-bit offsets can reach.
constexpr std::size_t kMaxField = std::size_t{1} << 27;

std::int32_t end_of(const std::string& bytes) { return static_cast<std::int32_t>(bytes.size()); }

void append_readable(std::string& text, std::string_view bytes) {
    constexpr char kDigits[] = "0123456789abcdef";
    while (!bytes.empty()) {
        const std::size_t size = decode_utf8(bytes).size;
        if (size != 0) {
            text += bytes.substr(0, size);
        } else {
            const auto byte = static_cast<unsigned char>(bytes[0]);
            text.append({'\\', 'x', kDigits[byte >> 4], kDigits[byte & 15]});
        }
        bytes.remove_prefix(std::max<std::size_t>(size, 1));
    }
}

void add_text(TableColumn& column, std::string_view bytes) {
    if (bytes.size() >= kMaxField) {
        throw std::invalid_argument("a field that is too long for a table");
    }
    if (is_ascii(bytes) || is_valid_utf8(bytes)) {
        column.texts += bytes;
    } else {
        append_readable(column.texts, bytes);
        column.odd_values.push_back(static_cast<std::int32_t>(column.offsets.size() - 1));
        column.odd_bytes += bytes;
        column.odd_offsets.push_back(end_of(column.odd_bytes));
    }
    column.offsets.push_back(end_of(column.texts));
}

void add_value(TableColumn& column, FieldType type, std::string_view field) {
    switch (type) {
        case FieldType::word:
        case FieldType::ngram:
            add_text(column, field);
            break;
        case FieldType::path:
            if (field.find('\\') == field.npos) {
                add_text(column, field);
            } else {
                add_text(column, unescaped(field));
            }
            break;
        case FieldType::count:
            column.counts.push_back(count_of(field));
            break;
        case FieldType::score:
            column.scores.push_back(score_of(field));
            break;
    }
}

void add_missing(TableColumn& column, FieldType type) {
    add_value(column, type, type == FieldType::count || type == FieldType::score ? "0" : "");
}

class Builder {
  public:
    explicit Builder(const LineFormat& format) : format_(format) { start(); }

    void begin_line(const std::vector<std::string_view>& fields) {
        if (num_bytes_ >= TableBatch::kMaxBytes) {
            start();
        }
        TableBatch& batch = batches.back();
        line_size_ = 0;
        for (std::size_t index = 0; index < fields.size(); ++index) {
            add_value(batch.fields[index], format_.fields[index].type, fields[index]);
            line_size_ += fields[index].size();
        }
        num_bytes_ += line_size_;
        ++batch.num_lines;
        line_ = &fields;
        has_items_ = false;
    }

    void item(std::string_view value, std::string_view weight) {
        // More bytes of items than of the fields, which the next batch repeats.
        if (num_bytes_ >= TableBatch::kMaxBytes + 2 * line_size_) {
            start();
            begin_line(*line_);
        }
        TableBatch& batch = batches.back();
        batch.line_of_row.push_back(static_cast<std::int32_t>(batch.num_lines - 1));
        add_value(batch.items[0], format_.value->type, value);
        if (format_.weight) {
            add_value(batch.items[1], format_.weight->type, weight);
        }
        num_bytes_ += value.size() + sizeof(std::uint64_t);
        has_items_ = true;
    }

    void end_line() {
        if (!format_.value || has_items_) {
            return;
        }
        TableBatch& batch = batches.back();
        batch.no_items.push_back(static_cast<std::int32_t>(batch.line_of_row.size()));
        batch.line_of_row.push_back(static_cast<std::int32_t>(batch.num_lines - 1));
        add_missing(batch.items[0], format_.value->type);
        if (format_.weight) {
            add_missing(batch.items[1], format_.weight->type);
        }
    }

    std::vector<TableBatch> batches;

  private:
    void start() {
        TableBatch& batch = batches.emplace_back();
        batch.fields.resize(format_.fields.size());
        batch.items.resize(format_.value.has_value() + format_.weight.has_value());
        num_bytes_ = 0;
    }

    const LineFormat& format_;
    std::size_t num_bytes_ = 0;  // of text in the last batch
    std::size_t line_size_ = 0;  // bytes of the fields of the line
    const std::vector<std::string_view>* line_ = nullptr;
    bool has_items_ = false;
};

}  // namespace

std::vector<TableBatch> table_batches(std::string_view text, const LineFormat& format) {
    Builder builder(format);
    read_lines(text, format, builder);
    return std::move(builder.batches);
}

}  // namespace gompfs
