#include <vesta/core/plug_in.h>

#include <dlfcn.h>
#include <vesta_build_identity.h>

#include <cstring>

namespace vesta {

const char* build_identity() { return VESTA_BUILD_IDENTITY; }

std::string other_build(const std::string& library, const char* theirs) {
  if (std::strcmp(theirs, build_identity()) == 0) return {};
  return library + " is of another build than libvesta.so (" + theirs + " and " + build_identity() +
         "). Install the two that belong together, or build both again.";
}

void* load_plug_in(const std::string& path, std::string& problem) {
  void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!library) {
    problem = dlerror();
    if (problem.find("undefined symbol") != std::string::npos) problem += ". It is of another build than libvesta.so.";
    return nullptr;
  }
  const auto* build = static_cast<const char*>(dlsym(library, "vesta_plug_in_build"));
  problem = other_build(path, build ? build : "unknown");
  return problem.empty() ? library : nullptr;  // a refused library stays open: not even its destructors are called
}

}  // namespace vesta
