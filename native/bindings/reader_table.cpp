// The Python classes gompfs._native.fuse.ServedArchive and ReaderTable; see
// native/fuse/reader_table.h.
#include "fuse/reader_table.h"

#include <nanobind/nanobind.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/vector.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "bindings/bindings.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace gompfs {
namespace {

nb::tuple times_of(const LatencyHistogram& histogram) {
    const LatencyHistogram::Counts counts = histogram.counts();
    return nb::make_tuple(std::vector<std::uint64_t>(counts.begin(), counts.end()),
                          static_cast<double>(histogram.total_nanoseconds()) * 1e-9);
}

nb::dict request_times(const ServedArchive& archive) {
    const RequestTimes& times = archive.times;
    nb::dict all;
    all[nb::make_tuple("read", "fast")] = times_of(times.reads_here);
    all[nb::make_tuple("read", "slow")] = times_of(times.reads_forwarded);
    all[nb::make_tuple("other", "fast")] = times_of(times.others_here);
    all[nb::make_tuple("other", "slow")] = times_of(times.others_forwarded);
    return all;
}

}  // namespace

void bind_reader_table(nb::module_& module) {
    nb::class_<ServedArchive>(module, "ServedArchive")
        .def(nb::init<std::shared_ptr<BlockReader>>(), "reader"_a)
        .def("request_times", &gompfs::request_times)
        .def(
            "add_read_bytes",
            [](ServedArchive& archive, std::uint64_t size) { archive.num_read_bytes += size; },
            "size"_a)
        .def_prop_ro("num_read_bytes",
                     [](ServedArchive& archive) { return archive.num_read_bytes.load(); });
    nb::class_<ReaderTable>(module, "ReaderTable")
        .def(nb::init<>())
        .def("insert", &ReaderTable::insert, "snapshot"_a, "archive"_a)
        .def("erase", &ReaderTable::erase, "snapshot"_a)
        .def("open_files_below", &ReaderTable::open_files_below, "size"_a);
    module.attr("SNAPSHOT_SHIFT") = ReaderTable::kSnapshotShift;
    module.attr("MAX_SNAPSHOTS") = ReaderTable::kMaxSnapshots;
    module.attr("FIRST_VIRTUAL") = ReaderTable::kFirstVirtual;
    module.attr("FIRST_TIME_LOG2") = LatencyHistogram::kFirstLog2;
}

}  // namespace gompfs
