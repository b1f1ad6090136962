// A codec as an argument: a Codec, or its number. Members of gompfs.codec.Codec are numbers.
#pragma once

#include <nanobind/nanobind.h>

#include "codec/codec.h"

namespace gompfs {

struct CodecArgument {
    Codec codec;
    operator Codec() const { return codec; }
};

}  // namespace gompfs

template <>
struct nanobind::detail::type_caster<gompfs::CodecArgument> {
    NB_TYPE_CASTER(gompfs::CodecArgument, make_caster<gompfs::Codec>::Name + const_name(" | int"))

    bool from_python(handle source, std::uint32_t flags, cleanup_list* cleanup) noexcept {
        make_caster<gompfs::Codec> caster;
        if (!caster.from_python(source, flags, cleanup)) {
            return false;
        }
        value.codec = caster.value;
        return true;
    }
};
