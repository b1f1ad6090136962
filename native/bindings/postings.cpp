// The class gompfs._native.statistics.Postings, and the directions of a traversal.
#include "statistics/postings.h"

#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>

#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "bindings/arrays.h"
#include "bindings/bindings.h"
#include "bindings/interruptible.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace gompfs {
namespace {

using NumberRows = nb::ndarray<const std::uint64_t, nb::ndim<2>, nb::c_contig>;

void init(Postings* self, std::string directory, std::uint64_t in_memory, std::uint64_t limit) {
    new (self) Postings(Spill::Options{std::move(directory), in_memory, limit});
}

// Copies rows of two numbers, which are laid out as a Value.
template <typename Value>
std::vector<Value> copy_rows(const NumberRows& rows) {
    static_assert(sizeof(Value) == 2 * sizeof(std::uint64_t));
    if (rows.shape(1) != 2) {
        throw nb::value_error("a key and a posting must have two numbers each");
    }
    std::vector<Value> values(rows.shape(0));
    if (!values.empty()) {
        std::memcpy(values.data(), rows.data(), values.size() * sizeof(Value));
    }
    return values;
}

void add(Postings& postings, const NumberRows& keys, const NumberRows& of_keys,
         unsigned num_threads) {
    const auto its_keys = copy_rows<NgramKey>(keys);
    const auto its_postings = copy_rows<Posting>(of_keys);
    run_interruptibly([&] { postings.add(its_keys, its_postings, num_threads); });
}

void gather(Postings& postings, const Corpus& corpus, bool per_file, Direction direction,
            unsigned num_threads) {
    run_interruptibly(
        [&] { gather_postings(corpus, per_file, {direction, num_threads}, postings); });
}

void add_over_edges(Postings& postings, const Corpus& corpus, bool per_file, unsigned num_threads) {
    run_interruptibly([&] { gather_over_edges(corpus, per_file, num_threads, postings); });
}

}  // namespace

void bind_postings(nb::module_& statistics) {
    nb::enum_<Direction>(statistics, "Direction",
                         "The direction of traversal (TADOC section 4, G-TADOC section 4).")
        .value("AUTO", Direction::automatic,
               "Chosen for each part of a grammar, from its number of files and the sizes of its "
               "rules.")
        .value("TOP_DOWN", Direction::top_down,
               "Weights flow from each file to the rules that it uses.")
        .value("BOTTOM_UP", Direction::bottom_up,
               "Each rule gets a table of the terms in it and in the rules below; files read the "
               "tables of their elements.\n\n"
               "If the tables of a part could exceed 64 MiB, the CPU goes top-down for that part.");
    nb::class_<Postings>(statistics, "Postings",
                         "How often n-grams occur in files, in `limit` bytes at most: `in_memory` "
                         "bytes, and the rest in `directory`.")
        .def("__init__", &init, "directory"_a, "in_memory"_a, "limit"_a,
             "Creates no file before the memory is used up.")
        .def("gather", &gather, "corpus"_a, "per_file"_a, "direction"_a, "num_threads"_a,
             "Counts on the CPU. Raises ValueError above the limit, OSError.")
        .def("gather_over_edges", &add_over_edges, "corpus"_a, "per_file"_a, "num_threads"_a,
             "Counts only the n-grams that span two parts, which a device does not count. Raises "
             "what gather raises.")
        .def("add", &add, "keys"_a, "postings"_a, "num_threads"_a,
             "Adds runs, one for each thread: distinct keys, ascending, as rows (low half, high "
             "half), and postings.\n\n"
             "Postings are rows (index of the key | file << 32, count), sorted by key and file, "
             "each pair once. Files are numbered as in the corpus, or 0. The numbers are not "
             "checked. Raises what gather raises.");
}

}  // namespace gompfs
