// Docs of the topic trigonometric: what help() and the reference show, but for pointwise ops (their structs do).
#pragma once

namespace vesta::doc {

inline constexpr char angle[] =
    "angle(input): the angle of a complex number in radians, in (-pi, pi]; of a real one 0, or pi for x < 0; a "
    "real tensor.";
inline constexpr char complex[] =
    "complex(real, imag): a complex tensor of two real ones of one dtype, float32 or float64, with broadcasting.";
inline constexpr char polar[] =
    "polar(abs, angle): abs * cos(angle) + i abs * sin(angle), a complex tensor of two real ones of one dtype, "
    "with broadcasting.";

}  // namespace vesta::doc
