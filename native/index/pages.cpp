// Checks the pages of a SQLite image; see pages.h. The format is described at
// https://www.sqlite.org/fileformat2.html.
#include "index/pages.h"

#include "index/tree_walk.h"

namespace gompfs {
namespace {

void check_freelist(Pages& pages) {
    const std::uint32_t count = big_endian32(pages.header() + 36);
    std::uint64_t num_found = 0;
    for (std::uint32_t trunk = big_endian32(pages.header() + 32); trunk != 0;) {
        const std::uint8_t* const bytes = pages.use(trunk);
        const std::uint32_t num_leaves = big_endian32(bytes + 4);
        if (num_leaves > pages.usable() / 4 - 2) {
            fail_image("a page of its freelist lists too many pages");
        }
        for (std::uint32_t leaf = 0; leaf < num_leaves; ++leaf) {
            pages.use(big_endian32(bytes + 8 + std::size_t{4} * leaf));
        }
        num_found += 1 + std::uint64_t{num_leaves};
        trunk = big_endian32(bytes);
    }
    if (num_found != count) {
        fail_image("its freelist does not have the length that the header states");
    }
}

}  // namespace

void check_pages(std::span<const std::uint8_t> image, std::span<const Root> roots) {
    Pages pages(image);
    check_freelist(pages);
    const auto visit = [](std::int64_t, std::span<const std::uint8_t>) {};
    TreeWalk(pages, {1, 0}, visit).run();
    for (const Root root : roots) {
        TreeWalk(pages, root, visit).run();
    }
}

}  // namespace gompfs
