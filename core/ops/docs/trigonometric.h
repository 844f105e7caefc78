// Docs of the topic trigonometric: what help() and the reference show, but for pointwise ops (their structs do).
#pragma once

namespace vesta::doc {

inline constexpr char angle[] =
    "angle(input): the angle of a complex number in radians, in (-pi, pi]; of a real one 0, or pi for x < 0; a "
    "real tensor.";

}  // namespace vesta::doc
