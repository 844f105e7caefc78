// A CUDA device for tests of native programs, which link libvesta.so alone.
#pragma once
#include <dlfcn.h>

#include <cstdlib>
#include <filesystem>

#include <vesta/cuda/api.h>

namespace vesta {

/// Points core at the emulated device beside libvesta.so unless the caller chose a library or there is a GPU.
inline bool have_device() {
  Dl_info here{};
  dladdr(reinterpret_cast<void*>(&backend), &here);
  const auto emulated = std::filesystem::path(here.dli_fname).parent_path() / "libvesta_cuda_emulation.so";
  if (!std::filesystem::exists("/dev/nvidia0") && std::filesystem::exists(emulated)) {
    setenv("VESTA_CUDA_LIBRARY", emulated.c_str(), 0);
  }
  return cuda::is_available();
}

}  // namespace vesta
