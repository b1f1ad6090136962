// Functions of gompfs._native.statistics that turn the lines of statistics into JSON and tables.
#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "bindings/arrays.h"
#include "bindings/bindings.h"
#include "bindings/interruptible.h"
#include "bindings/types.h"
#include "common/failures.h"
#include "statistics/json_lines.h"
#include "statistics/line_table.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace gompfs {
namespace {

using NamedType = std::pair<std::string, FieldType>;

Field field_of(const NamedType& pair) { return {pair.first, pair.second}; }

void make_format(LineFormat* self, const std::vector<NamedType>& fields, std::string items,
                 const std::optional<NamedType>& value, const std::optional<NamedType>& weight) {
    LineFormat format;
    for (const NamedType& field : fields) {
        format.fields.push_back(field_of(field));
    }
    format.items = std::move(items);
    if (value) {
        format.value = field_of(*value);
    }
    if (weight) {
        format.weight = field_of(*weight);
    }
    new (self) LineFormat(std::move(format));
}

// Returns convert(text) for each text, made by several threads without the GIL.
template <typename Convert>
auto converted(const std::vector<nb::bytes>& texts, unsigned num_threads, Convert&& convert) {
    std::vector<std::string_view> views;
    for (const nb::bytes& text : texts) {
        views.push_back(as_text(text));
    }
    std::vector<decltype(convert(views[0]))> results(texts.size());
    run_interruptibly([&] {
        parallel_for_all(views.size(), num_threads,
                         [&](std::size_t index) { results[index] = convert(views[index]); });
    });
    return results;
}

py::List<nb::bytes> to_json(const std::vector<nb::bytes>& texts, const LineFormat& format,
                            unsigned num_threads) {
    py::List<nb::bytes> lines;
    for (const std::string& text : converted(
             texts, num_threads, [&](std::string_view text) { return json_lines(text, format); })) {
        lines.append(to_bytes(text));
    }
    return lines;
}

py::List<TableBatch> to_batches(const std::vector<nb::bytes>& texts, const LineFormat& format,
                                unsigned num_threads) {
    py::List<TableBatch> all;
    for (std::vector<TableBatch>& batches :
         converted(texts, num_threads,
                   [&](std::string_view text) { return table_batches(text, format); })) {
        for (TableBatch& batch : batches) {
            all.append(nb::cast(std::move(batch)));
        }
    }
    return all;
}

void bind_table(nb::module_& statistics) {
    nb::class_<TableColumn> column(
        statistics, "TableColumn",
        "The values of a column, in the layout of Arrow: see native/statistics/line_table.h.");
    def_view<&TableColumn::offsets>(column, "offsets");
    def_view<&TableColumn::texts>(column, "texts");
    def_view<&TableColumn::odd_values>(column, "odd_values",
                                       "Indexes of the texts that are not UTF-8.");
    def_view<&TableColumn::odd_offsets>(column, "odd_offsets");
    def_view<&TableColumn::odd_bytes>(column, "odd_bytes");
    def_view<&TableColumn::counts>(column, "counts");
    def_view<&TableColumn::scores>(column, "scores");
    nb::class_<TableBatch> batch(
        statistics, "TableBatch",
        "Consecutive rows of a table: one for each item of a line, or, without items, one for each "
        "line.");
    batch.def_ro("num_lines", &TableBatch::num_lines);
    def_view<&TableBatch::line_of_row>(batch, "line_of_row");
    def_view<&TableBatch::no_items>(batch, "no_items",
                                    "The rows of lines without items, in which these are missing.");
    batch.def(
        "field",
        [](const TableBatch& self, std::size_t index) -> const TableColumn& {
            return self.fields.at(index);
        },
        "index"_a, nb::rv_policy::reference_internal, "Returns the values of a field, by line.");
    batch.def(
        "item",
        [](const TableBatch& self, std::size_t index) -> const TableColumn& {
            return self.items.at(index);
        },
        "index"_a, nb::rv_policy::reference_internal,
        "Returns the values of items, by row: 0 for the value, 1 for the weight.");
}

}  // namespace

void bind_line_formats(nb::module_& statistics) {
    nb::enum_<FieldType>(statistics, "FieldType", "The type of a field of a line.")
        .value("WORD", FieldType::word)
        .value("NGRAM", FieldType::ngram)
        .value("PATH", FieldType::path)
        .value("COUNT", FieldType::count)
        .value("SCORE", FieldType::score);
    nb::class_<LineFormat>(
        statistics, "LineFormat",
        "The fields of the lines of a statistic: see native/statistics/line_fields.h.")
        .def("__init__", &make_format, "fields"_a, "items"_a = "", "value"_a.none() = nb::none(),
             "weight"_a.none() = nb::none(),
             "`value` and `weight` are those of each item, and `items` is what all items together "
             "are called.");
    bind_table(statistics);
    statistics.def("json_lines", &to_json, "texts"_a, "lines"_a, "num_threads"_a,
                   "Returns JSON Lines for the lines of each text. Raises ValueError.");
    statistics.def(
        "table_batches", &to_batches, "texts"_a, "lines"_a, "num_threads"_a,
        "Returns the rows of all texts in batches of about 8 MiB. Raises ValueError for a text "
        "without the format.");
}

}  // namespace gompfs
