// The Python module gompfs._reading: decoded blocks, who reads them, and the requests of a mount
// that need nothing else.
#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <tuple>
#include <utility>
#include <vector>

#include "common/buffer_view.h"
#include "reading/block_reader.h"
#include "reading/reader_table.h"
#include "reading/request_loop.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace gompfs {
namespace {

using Extents = std::vector<std::tuple<std::uint64_t, std::uint64_t, std::uint64_t>>;

struct LentBuffer final : Loan {
    explicit LentBuffer(nb::handle object) : view(object, PyBUF_SIMPLE) {}
    BufferView view;
};

void insert(BlockReader& reader, std::uint64_t number, nb::handle content) {
    auto loan = std::make_unique<LentBuffer>(content);
    const std::span<const std::uint8_t> bytes = loan->view.bytes();
    reader.table.insert(number, bytes, std::move(loan));
}

void add_file(BlockReader& reader, std::uint64_t node, std::uint64_t size, const Extents& extents) {
    FileLayout layout{size, {}};
    for (const auto& [file_offset, stream_offset, extent_size] : extents) {
        layout.extents.push_back({file_offset, stream_offset, extent_size});
    }
    reader.add_file(node, std::move(layout));
}

std::optional<std::pair<std::uint64_t, std::uint64_t>> wait_ahead(BlockReader& reader) {
    const std::optional<BlockRange> range = [&] {
        const nb::gil_scoped_release release;
        return reader.readers.wait();
    }();
    return range ? std::make_optional(std::make_pair(range->first, range->end)) : std::nullopt;
}

nb::tuple times_of(const LatencyHistogram& histogram) {
    const LatencyHistogram::Counts counts = histogram.counts();
    return nb::make_tuple(std::vector<std::uint64_t>(counts.begin(), counts.end()),
                          static_cast<double>(histogram.total_nanoseconds()) * 1e-9);
}

nb::dict request_times(const BlockReader& reader) {
    const RequestTimes& times = reader.times;
    nb::dict all;
    all[nb::make_tuple("read", "cpp")] = times_of(times.reads_here);
    all[nb::make_tuple("read", "python")] = times_of(times.reads_forwarded);
    all[nb::make_tuple("other", "cpp")] = times_of(times.others_here);
    all[nb::make_tuple("other", "python")] = times_of(times.others_forwarded);
    return all;
}

int run(const ReaderTable& readers, int device, std::size_t buffer_size, nb::callable answer) {
    const nb::gil_scoped_release release;
    return answer_requests(device, readers, buffer_size,
                           [&](std::span<const std::uint8_t> request) {
                               const nb::gil_scoped_acquire acquire;
                               answer(nb::bytes(request.data(), request.size()));
                           });
}

}  // namespace
}  // namespace gompfs

NB_MODULE(_reading, module) {
    nb::set_leak_warnings(false);  // what lives as long as the process need not be freed
    using gompfs::BlockReader;
    using gompfs::ReaderTable;
    module.doc() = "Reads of decoded blocks, without the interpreter's lock.";
    nb::class_<BlockReader>(module, "BlockReader")
        .def(nb::init<std::uint64_t, std::uint64_t, std::uint64_t>(), "num_blocks"_a,
             "block_size"_a, "capacity"_a)
        .def("insert", &gompfs::insert, "number"_a, "content"_a)
        .def(
            "erase", [](BlockReader& reader, std::uint64_t number) { reader.table.erase(number); },
            "number"_a)
        .def(
            "take_use",
            [](BlockReader& reader, std::uint64_t number) { return reader.table.take_use(number); },
            "number"_a)
        .def("clear", [](BlockReader& reader) { reader.table.clear(); })
        .def(
            "note",
            [](BlockReader& reader, std::uint64_t first, std::uint64_t count,
               std::uint64_t max_ahead) {
                reader.max_ahead.store(max_ahead);
                return reader.readers.note(first, count, max_ahead);
            },
            "first"_a, "count"_a, "max_ahead"_a)
        .def("wait_ahead", &gompfs::wait_ahead)
        .def("close", [](BlockReader& reader) { reader.readers.close(); })
        .def("add_file", &gompfs::add_file, "node"_a, "size"_a, "extents"_a)
        .def(
            "add_read_bytes",
            [](BlockReader& reader, std::uint64_t size) { reader.num_read_bytes += size; },
            "size"_a)
        .def("request_times", &gompfs::request_times)
        .def_prop_ro("num_read_bytes",
                     [](BlockReader& reader) { return reader.num_read_bytes.load(); })
        .def_prop_ro("num_hits", [](BlockReader& reader) { return reader.num_hits.load(); });
    nb::class_<ReaderTable>(module, "ReaderTable")
        .def(nb::init<>())
        .def("insert", &ReaderTable::insert, "snapshot"_a, "reader"_a)
        .def("erase", &ReaderTable::erase, "snapshot"_a)
        .def("run", &gompfs::run, "device"_a, "buffer_size"_a, "answer"_a);
    module.attr("SNAPSHOT_SHIFT") = ReaderTable::kSnapshotShift;
    module.attr("MAX_SNAPSHOTS") = ReaderTable::kMaxSnapshots;
    module.attr("FIRST_TIME_LOG2") = gompfs::LatencyHistogram::kFirstLog2;
}
