// mount(2) and umount2(2) for a process that may call them, so that mounting needs no libfuse.
#pragma once

#include <string>

namespace gompfs {

// Mounts the file system `type` read-only, without devices and set-user-ID programs; with
// `has_no_programs`, none of its files can be executed. `data` holds the options that the file
// system itself parses. Returns 0 or an errno.
int mount_read_only(const std::string& source, const std::string& mountpoint,
                    const std::string& type, const std::string& data, bool has_no_programs);

// Unmounts the topmost mount at `mountpoint`, which must not be a symlink. `is_lazy` detaches a
// mount that is in use; `is_forced` makes its pending requests fail first. Returns 0 or an errno.
int unmount(const std::string& mountpoint, bool is_lazy, bool is_forced);

}  // namespace gompfs
