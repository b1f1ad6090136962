// A RangePlan as Python holds it.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "blocks/block_reader.h"
#include "blocks/range_plan.h"

namespace gompfs {

// A plan, and why it could not be made.
struct BoundPlan {
    ReadFailure failure;
    RangePlan plan;

    BoundPlan(BlockReader& reader, const std::vector<FileRange>& ranges)
        : plan(
              reader.num_blocks(), reader.block_size(),
              [&reader](std::uint64_t ino, std::shared_ptr<const FileLayout>& file) {
                  return reader.find_file(ino, file);
              },
              ranges, failure) {}
};

}  // namespace gompfs
