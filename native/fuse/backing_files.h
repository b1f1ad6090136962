// Backing files of FUSE passthrough (Linux 6.9), which the kernel reads by itself.
#pragma once

#include <cstdint>

namespace gompfs {

// Registers an open file as a backing file of a mount. Returns its number for the reply to OPEN.
// Throws std::system_error: EPERM without CAP_SYS_ADMIN, ENOTTY if the kernel has no passthrough.
std::int32_t register_backing_file(int device, int descriptor);

// Lets the kernel close a backing file once no open file of the mount uses it. Throws
// std::system_error.
void unregister_backing_file(int device, std::int32_t backing_id);

}  // namespace gompfs
