// Access to the bytes of a sequence of blocks.
#pragma once

#include <nanobind/nanobind.h>

#include <span>
#include <vector>

#include "bindings/buffer_view.h"
#include "bindings/types.h"
#include "common/bytes.h"

namespace gompfs {

// The bytes of a sequence of blocks, held as long as this object lives.
class BlockViews {
  public:
    explicit BlockViews(const py::Sequence<py::Buffer>& blocks) {
        views_.reserve(nanobind::len(blocks));
        for (nanobind::handle block : blocks) {
            blocks_.push_back(views_.emplace_back(block, PyBUF_SIMPLE).bytes());
        }
    }
    std::span<const Bytes> blocks() const { return blocks_; }

  private:
    std::vector<BufferView> views_;
    std::vector<Bytes> blocks_;
};

}  // namespace gompfs
