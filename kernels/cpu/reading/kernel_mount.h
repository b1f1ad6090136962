// mount(2) and umount2(2) for a process that may call them, so that a mount needs no libfuse.
#pragma once

#include <string>

namespace gompfs {

// Mounts the file system `type`, read-only and without devices and set-user-id programs. `data` has
// what the file system itself reads. Returns 0 or an errno.
int mount_read_only(const std::string& source, const std::string& mountpoint,
                    const std::string& type, const std::string& data);

// Unmounts what is on top at `mountpoint`, which is no symlink. `is_lazy` detaches a mount in use;
// `is_forced` makes its requests fail first. Returns 0 or an errno.
int unmount(const std::string& mountpoint, bool is_lazy, bool is_forced);

}  // namespace gompfs
