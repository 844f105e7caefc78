// Docs of the topic explog: what help() and the reference show. Pointwise ops have theirs in the struct.
#pragma once

namespace vesta::doc {

inline constexpr char logaddexp[] =
    "logaddexp(input, other): log(e ** x + e ** y) without overflow, elementwise with broadcasting.";

}  // namespace vesta::doc
