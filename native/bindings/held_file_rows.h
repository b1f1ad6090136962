// The class gompfs._native.index.FileRows: rows of files, with the columns that they point into.
#pragma once

#include "bindings/buffer_view.h"
#include "index/file_rows.h"

namespace gompfs {

struct HeldFileRows {
    BufferView columns;
    FileRows rows;
};

}  // namespace gompfs
