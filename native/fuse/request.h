// A request of the kernel (linux/fuse.h): a header, then the arguments of its opcode.
#pragma once

#include <linux/fuse.h>

#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string_view>

namespace gompfs {

class Request {
  public:
    explicit Request(std::span<const std::uint8_t> bytes) {
        if (bytes.size() >= sizeof header) {
            std::memcpy(&header, bytes.data(), sizeof header);
            body_ = bytes.subspan(sizeof header);
        }
    }

    std::string_view body() const {
        return {reinterpret_cast<const char*>(body_.data()), body_.size()};
    }

    template <typename Argument>
    std::optional<Argument> argument() const {
        Argument value;
        if (body_.size() < sizeof value) {
            return std::nullopt;
        }
        std::memcpy(&value, body_.data(), sizeof value);
        return value;
    }

    fuse_in_header header{};

  private:
    std::span<const std::uint8_t> body_;
};

}  // namespace gompfs
