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
#include "bindings/types.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace gompfs {
namespace {

using Times = py::Tuple<std::vector<std::uint64_t>, double>;

Times times_of(const LatencyHistogram& histogram) {
    const LatencyHistogram::Counts counts = histogram.counts();
    return nb::make_tuple(std::vector<std::uint64_t>(counts.begin(), counts.end()),
                          static_cast<double>(histogram.total_nanoseconds()) * 1e-9);
}

py::Dict<py::Tuple<nb::str, nb::str>, Times> request_times(const ServedArchive& archive) {
    const RequestTimes& times = archive.times;
    py::Dict<py::Tuple<nb::str, nb::str>, Times> all;
    all[nb::make_tuple("read", "fast")] = times_of(times.reads_here);
    all[nb::make_tuple("read", "slow")] = times_of(times.reads_forwarded);
    all[nb::make_tuple("other", "fast")] = times_of(times.others_here);
    all[nb::make_tuple("other", "slow")] = times_of(times.others_forwarded);
    return all;
}

}  // namespace

void bind_reader_table(nb::module_& module) {
    nb::class_<ServedArchive>(module, "ServedArchive",
                              "One archive that a mount shows, and what the mount counts about it.")
        .def(nb::init<std::shared_ptr<BlockReader>>(), "reader"_a)
        .def("request_times", &gompfs::request_times,
             "Returns a histogram of the time that requests took, and the total seconds.\n\n"
             "Keys are (\"read\" or \"other\", \"fast\" or \"slow\"): slow requests needed Python. "
             "Class i of a histogram counts the requests that took at most 2 ** (FIRST_TIME_LOG2 + "
             "i) nanoseconds; the last class counts all longer ones.")
        .def(
            "add_read_bytes",
            [](ServedArchive& archive, std::uint64_t size) { archive.num_read_bytes += size; },
            "size"_a, "Adds bytes that Python returned to `num_read_bytes`.")
        .def_prop_ro(
            "num_read_bytes", [](ServedArchive& archive) { return archive.num_read_bytes.load(); },
            "Number of bytes that read requests returned.");
    nb::class_<ReaderTable>(module, "ReaderTable",
                            "The archives of all snapshots that a mount shows.")
        .def(nb::init<>())
        .def("insert", &ReaderTable::insert, "snapshot"_a, "archive"_a,
             "Adds the archive of a snapshot, and makes it the current one.")
        .def("erase", &ReaderTable::erase, "snapshot"_a,
             "Removes a snapshot's reader. Its nodes are unknown from then on.")
        .def("open_files_below", &ReaderTable::open_files_below, "size"_a,
             "Lets FuseServer open known files of less than `size` bytes without a file handle; 0 "
             "for none.");
    // The bits of a node number from SNAPSHOT_SHIFT on are the number of its snapshot, which is
    // below MAX_SNAPSHOTS. Node numbers of virtual entries begin at FIRST_VIRTUAL. Inode numbers
    // are smaller.
    module.attr("SNAPSHOT_SHIFT") = ReaderTable::kSnapshotShift;
    module.attr("MAX_SNAPSHOTS") = ReaderTable::kMaxSnapshots;
    module.attr("FIRST_VIRTUAL") = ReaderTable::kFirstVirtual;
    module.attr("FIRST_TIME_LOG2") = LatencyHistogram::kFirstLog2;
}

}  // namespace gompfs
