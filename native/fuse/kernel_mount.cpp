// Calls mount(2) and umount2(2); see kernel_mount.h.
#include "fuse/kernel_mount.h"

#include <sys/mount.h>

#include <cerrno>

namespace gompfs {

int mount_read_only(const std::string& source, const std::string& mountpoint,
                    const std::string& type, const std::string& data, bool has_no_programs) {
    const unsigned long flags =
        MS_RDONLY | MS_NOSUID | MS_NODEV | (has_no_programs ? MS_NOEXEC : 0UL);
    const int status = mount(source.c_str(), mountpoint.c_str(), type.c_str(), flags, data.c_str());
    return status == 0 ? 0 : errno;
}

int unmount(const std::string& mountpoint, bool is_lazy, bool is_forced) {
    const int flags = UMOUNT_NOFOLLOW | (is_lazy ? MNT_DETACH : 0) | (is_forced ? MNT_FORCE : 0);
    return umount2(mountpoint.c_str(), flags) == 0 ? 0 : errno;
}

}  // namespace gompfs
