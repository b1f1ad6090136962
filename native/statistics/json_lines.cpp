// See json_lines.h. Members are written in the order of the columns. Numbers are written as the
// text has them, once they are known to be numbers.
#include "statistics/json_lines.h"

#include <utility>

#include "common/json_text.h"
#include "common/utf8.h"

namespace gompfs {
namespace {

void append_text(std::string& output, std::string_view bytes) {
    if (is_ascii(bytes) || is_valid_utf8(bytes)) {
        append_json_string(output, bytes);
    } else {
        output += "{\"bytes\":\"";
        append_base64(output, bytes);
        output += "\"}";
    }
}

void append_path(std::string& output, std::string_view field) {
    if (field.find('\\') == field.npos) {
        append_text(output, field);
    } else {
        append_text(output, unescaped(field));
    }
}

void append_words(std::string& output, std::string_view ngram) {
    char separator = '[';
    do {
        output += separator;
        append_text(output, cut_off(ngram, ' '));
        separator = ',';
    } while (!ngram.empty());
    output += ']';
}

void append_value(std::string& output, FieldType type, std::string_view field) {
    switch (type) {
        case FieldType::word:
            append_text(output, field);
            break;
        case FieldType::ngram:
            append_words(output, field);
            break;
        case FieldType::path:
            append_path(output, field);
            break;
        case FieldType::count:
            count_of(field);
            output += field;
            break;
        case FieldType::score:
            score_of(field);
            output += field;
            break;
    }
}

class Writer {
  public:
    explicit Writer(const LineFormat& format) : format_(format) {
        for (const Field& field : format.fields) {
            keys_.push_back(key(keys_.empty() ? '{' : ',', field.name));
        }
        if (format.value) {
            items_key_ = key(',', format.items) + '[';
            value_key_ = key('{', format.value->name);
        }
        if (format.weight) {
            weight_key_ = key(',', format.weight->name);
        }
    }

    void begin_line(const std::vector<std::string_view>& fields) {
        if (is_plain()) {
            append_value(output, format_.fields[0].type, fields[0]);
            return;
        }
        for (std::size_t index = 0; index < fields.size(); ++index) {
            output += keys_[index];
            append_value(output, format_.fields[index].type, fields[index]);
        }
        output += items_key_;
        is_first_ = true;
    }

    void item(std::string_view value, std::string_view weight) {
        if (!is_first_) {
            output += ',';
        }
        is_first_ = false;
        if (!format_.weight) {
            append_value(output, format_.value->type, value);
            return;
        }
        output += value_key_;
        append_value(output, format_.value->type, value);
        output += weight_key_;
        append_value(output, format_.weight->type, weight);
        output += '}';
    }

    void end_line() { output += is_plain() ? "\n" : format_.value ? "]}\n" : "}\n"; }

    std::string output;

  private:
    static std::string key(char before, std::string_view name) {
        std::string text(1, before);
        append_json_string(text, name);
        return text + ':';
    }

    bool is_plain() const { return format_.fields.size() == 1 && !format_.value; }

    const LineFormat& format_;
    std::vector<std::string> keys_;
    std::string items_key_, value_key_, weight_key_;
    bool is_first_ = true;
};

}  // namespace

std::string json_lines(std::string_view text, const LineFormat& format) {
    Writer writer(format);
    writer.output.reserve(2 * text.size());
    read_lines(text, format, writer);
    return std::move(writer.output);
}

}  // namespace gompfs
