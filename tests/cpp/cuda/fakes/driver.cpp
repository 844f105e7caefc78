// libcuda.so.1 for machines without a driver: enough of one for cuDNN to make plans. Code "loads" and its kernels are
// "found"; every call that would need a device returns that there is none.
#include <cstddef>
#include <cstring>

namespace {

enum Result : int { success = 0, no_device = 100 };

int refuse() { return no_device; }
char loaded;  // what every handle points to

}  // namespace

#define VESTA_DRIVER extern "C" __attribute__((visibility("default"))) int

VESTA_DRIVER cuInit(unsigned) { return no_device; }
VESTA_DRIVER cuDriverGetVersion(int* version) {
  *version = 13000;
  return success;
}
VESTA_DRIVER cuGetErrorString(int, const char** text) {
  *text = "no device";
  return success;
}
VESTA_DRIVER cuGetErrorName(int, const char** text) {
  *text = "CUDA_ERROR_NO_DEVICE";
  return success;
}
VESTA_DRIVER cuLibraryLoadData(void** library, const void*, void*, void*, unsigned, void*, void*, unsigned) {
  *library = &loaded;
  return success;
}
VESTA_DRIVER cuLibraryUnload(void*) { return success; }
VESTA_DRIVER cuLibraryGetKernel(void** kernel, void*, const char*) {
  *kernel = &loaded;
  return success;
}
VESTA_DRIVER cuKernelSetAttribute(int, int, void*, int) { return success; }
VESTA_DRIVER cuKernelGetFunction(void** function, void* kernel) {
  *function = kernel;
  return success;
}
VESTA_DRIVER cuModuleLoadData(void** module, const void*) {
  *module = &loaded;
  return success;
}
VESTA_DRIVER cuModuleLoadDataEx(void** module, const void*, unsigned, void*, void*) {
  *module = &loaded;
  return success;
}
VESTA_DRIVER cuModuleGetFunction(void** function, void*, const char*) {
  *function = &loaded;
  return success;
}
VESTA_DRIVER cuModuleUnload(void*) { return success; }
VESTA_DRIVER cuFuncSetAttribute(void*, int, int) { return success; }

// The other functions that cuDNN looks up by name; it prints a message if one is missing.
#define VESTA_REFUSES(F)                                                                                   \
  F(cuCtxGetCurrent) F(cuCtxGetLimit) F(cuCtxPopCurrent) F(cuCtxPushCurrent) F(cuStreamGetCtx)             \
  F(cuLinkCreate) F(cuLinkAddData) F(cuLinkComplete) F(cuLinkDestroy) F(cuLaunchKernel) F(cuLaunchKernelEx) \
  F(cuLaunchCooperativeKernel) F(cuDeviceGetCount) F(cuDeviceGet) F(cuLibraryLoadFromFile)                 \
  F(cuKernelGetAttribute) F(cuOccupancyMaxPotentialClusterSize)
#define VESTA_X(name) \
  VESTA_DRIVER name() { return no_device; }
VESTA_REFUSES(VESTA_X)
#undef VESTA_X

/// Finds a function by name, as CUDA's runtime does for every one; a missing one gets a function that refuses.
VESTA_DRIVER cuGetProcAddress_v2(const char* name, void** function, int, unsigned long, int* status) {
  if (status) *status = 0;
#define VESTA_X(known)                              \
  if (!std::strcmp(name, #known)) {                 \
    *function = reinterpret_cast<void*>(&::known); \
    return success;                                 \
  }
  VESTA_X(cuInit)
  VESTA_X(cuDriverGetVersion)
  VESTA_X(cuGetErrorString)
  VESTA_X(cuGetErrorName)
  VESTA_X(cuLibraryLoadData)
  VESTA_X(cuLibraryUnload)
  VESTA_X(cuLibraryGetKernel)
  VESTA_X(cuKernelSetAttribute)
  VESTA_X(cuKernelGetFunction)
  VESTA_X(cuModuleLoadData)
  VESTA_X(cuModuleLoadDataEx)
  VESTA_X(cuModuleGetFunction)
  VESTA_X(cuModuleUnload)
  VESTA_X(cuFuncSetAttribute)
  VESTA_REFUSES(VESTA_X)
#undef VESTA_X
  *function = reinterpret_cast<void*>(&refuse);
  return success;
}
VESTA_DRIVER cuGetProcAddress(const char* name, void** function, int version, unsigned long flags) {
  return cuGetProcAddress_v2(name, function, version, flags, nullptr);
}
