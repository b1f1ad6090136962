// The class gompfs._native.statistics.CountedSection.
#pragma once

#include <nanobind/nanobind.h>

#include <optional>

#include "bindings/buffer_view.h"
#include "bindings/counted_files.h"
#include "bindings/interruptible.h"
#include "bindings/types.h"
#include "statistics/word_counts.h"

namespace gompfs {

// A section whose words were counted, with its bytes.
class HeldSection {
  public:
    HeldSection(const py::Buffer& section, const Inos& inos, unsigned num_threads)
        : view_(section, PyBUF_SIMPLE) {
        const CountedFiles files = counted_files(inos);
        run_interruptibly([&] { counted_.emplace(view_.bytes(), files, num_threads); });
    }
    const CountedSection& counted() const { return *counted_; }

  private:
    BufferView view_;
    std::optional<CountedSection> counted_;
};

}  // namespace gompfs
