// The functions of gompfs._native.fuse that ask the kernel to mount, to unmount, and to read
// backing files; see native/fuse/kernel_mount.h and native/fuse/backing_files.h.
#include "fuse/kernel_mount.h"

#include <nanobind/nanobind.h>

#include "bindings/bindings.h"
#include "fuse/backing_files.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace gompfs {

void bind_kernel_mount(nb::module_& module) {
    module.def(
        "mount_read_only",
        [](const nb::bytes& source, const nb::bytes& mountpoint, const nb::bytes& type,
           const nb::bytes& data, bool noexec) {
            return gompfs::mount_read_only(source.c_str(), mountpoint.c_str(), type.c_str(),
                                           data.c_str(), noexec);
        },
        "source"_a, "mountpoint"_a, "file_system"_a, "data"_a, "noexec"_a,
        "Calls mount(2), read-only, without devices and set-user-ID programs. Returns 0 or an "
        "errno.");
    module.def(
        "unmount",
        [](const nb::bytes& mountpoint, bool lazy, bool force) {
            return gompfs::unmount(mountpoint.c_str(), lazy, force);
        },
        "mountpoint"_a, "lazy"_a, "force"_a,
        "Calls umount2(2). `lazy` detaches a mount in use, `force` makes its requests fail. "
        "Returns 0 or an errno.");
    module.def(
        "register_backing_file", &gompfs::register_backing_file,
        nb::call_guard<nb::gil_scoped_release>(), "device"_a, "descriptor"_a,
        "Registers an open file as a backing file of a mount, and returns its number. Raises "
        "OSError if the kernel does not support or permit passthrough.");
    module.def(
        "unregister_backing_file", &gompfs::unregister_backing_file,
        nb::call_guard<nb::gil_scoped_release>(), "device"_a, "backing_id"_a,
        "Lets the kernel close a backing file once no open file of the mount uses it. Raises "
        "OSError.");
}

}  // namespace gompfs
