// Plug-ins: libraries that this one opens by name (CUDA, Gloo), and whether they were built with it. A library built
// with other headers has other ideas of every object; it is told apart before anything of it is called.
#pragma once
#include <string>

#include <vesta/core/base/macros.h>

namespace vesta {

/// Names the build that libvesta.so is of: its version, and a hash of the headers that all libraries share
/// (core/build_identity.cmake). A library that is built with it has the same text as VESTA_BUILD_IDENTITY.
VESTA_API const char* build_identity();

/// Says that `library` is of build `theirs` and not of this one, and what to do; empty where it is of this one.
VESTA_API std::string other_build(const std::string& library, const char* theirs);

/// Opens a plug-in, which states its build as `extern "C" const char vesta_plug_in_build[]`. Null, and `problem` says
/// why, where it is missing or of another build.
void* load_plug_in(const std::string& path, std::string& problem);

}  // namespace vesta
