// The functions of gompfs._native.fuse that mount and unmount; see native/fuse/kernel_mount.h.
#include "fuse/kernel_mount.h"

#include <nanobind/nanobind.h>

#include "bindings/bindings.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace gompfs {

void bind_kernel_mount(nb::module_& module) {
    module.def(
        "mount_read_only",
        [](const nb::bytes& source, const nb::bytes& mountpoint, const nb::bytes& type,
           const nb::bytes& data) {
            return gompfs::mount_read_only(source.c_str(), mountpoint.c_str(), type.c_str(),
                                           data.c_str());
        },
        "source"_a, "mountpoint"_a, "file_system"_a, "data"_a);
    module.def(
        "unmount",
        [](const nb::bytes& mountpoint, bool lazy, bool force) {
            return gompfs::unmount(mountpoint.c_str(), lazy, force);
        },
        "mountpoint"_a, "lazy"_a, "force"_a);
}

}  // namespace gompfs
