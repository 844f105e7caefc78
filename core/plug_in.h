// Plug-ins: libraries that this one opens by name (CUDA, Gloo), and the check that they were built with it. A library
// built with other headers lays out every object differently; it is recognised before anything in it is called.
#pragma once
#include <string>

#include <vesta/core/base/macros.h>

namespace vesta {

/// Returns the identity of libvesta.so's build: its version, and a hash of the headers that all libraries share
/// (core/build_identity.cmake). A library built with it has the same string as VESTA_BUILD_IDENTITY.
VESTA_API const char* build_identity();

/// Returns the error text for `library`, which is of build `theirs` and not of this one; empty if the builds are the
/// same.
VESTA_API std::string other_build(const std::string& library, const char* theirs);

/// Opens a plug-in, which states its build as `extern "C" const char vesta_plug_in_build[]`. Returns null, with the
/// reason in `problem`, if it is missing or of another build.
void* load_plug_in(const std::string& path, std::string& problem);

}  // namespace vesta
