// The runtime interface (runtime.h) on the CUDA runtime. Every function here is one CUDA call.
#include <cuda_runtime_api.h>

#include <atomic>
#include <cstring>

#include <cuda.h>
#include <vesta/cuda/runtime_device.h>

namespace vesta::cuda::rt {
namespace {

std::atomic<uint64_t> launches{0}, copies{0}, mallocs{0}, synchronizations{0};

Status status(cudaError_t e) {
  if (e != cudaSuccess && e != cudaErrorNotReady) cudaGetLastError();  // reported here: no later call repeats it
  return Status(int(e));
}

/// Looks up a function of the driver. Nothing links libcuda.so.1, which machines without a GPU lack.
template <class F>
F driver(const char* name) {
  void* f = nullptr;
  cudaDriverEntryPointQueryResult found{};
  if (cudaGetDriverEntryPointByVersion(name, &f, 12000, cudaEnableDefault, &found) != cudaSuccess) {
    cudaGetLastError();
    return nullptr;
  }
  return reinterpret_cast<F>(f);
}
#define VESTA_DRIVER(function)                                         \
  static const auto function##_ = driver<decltype(&function)>(#function); \
  if (!function##_) return Status::not_supported;

/// Converts an error of the driver. Driver and runtime use the same numbers for errors that both know (CUDA 10.1 and
/// later).
Status status(CUresult r) { return Status(int(r)); }

CUmemAllocationProp allocation_on(int device) {
  CUmemAllocationProp p{};
  p.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  p.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  p.location.id = device;
  return p;
}

}  // namespace

const char* implementation() { return "CUDA"; }
int version() {
  int v = 0;
  cudaRuntimeGetVersion(&v);
  return v;
}
const char* architectures() { return VESTA_CUDA_ARCHITECTURES; }
const char* status_name(Status s) { return cudaGetErrorName(cudaError_t(int(s))); }
const char* status_text(Status s) { return cudaGetErrorString(cudaError_t(int(s))); }

Status driver_version(int* version) { return status(cudaDriverGetVersion(version)); }
Status device_count(int* count) { return status(cudaGetDeviceCount(count)); }

Status device_properties(int device, DeviceProperties* to) {
  cudaDeviceProp p;
  if (cudaError_t e = cudaGetDeviceProperties(&p, device); e != cudaSuccess) return status(e);
  std::strncpy(to->name, p.name, sizeof to->name - 1);
  to->major = p.major, to->minor = p.minor;
  to->multi_processor_count = p.multiProcessorCount;
  to->warp_size = p.warpSize;
  to->max_threads_per_multi_processor = p.maxThreadsPerMultiProcessor;
  to->regs_per_multiprocessor = p.regsPerMultiprocessor;
  to->shared_memory_per_block_optin = p.sharedMemPerBlockOptin;
  to->total_memory = p.totalGlobalMem;
  to->l2_cache_size = size_t(p.l2CacheSize);
  to->is_integrated = p.integrated != 0;
  to->reads_pageable_memory = p.pageableMemoryAccess != 0;
  return Status::success;
}

Status set_device(int device) { return status(cudaSetDevice(device)); }
Status get_device(int* device) { return status(cudaGetDevice(device)); }
Status device_synchronize() {
  ++synchronizations;
  return status(cudaDeviceSynchronize());
}
Status can_access_peer(int a, int b, bool* yes) {
  int can = 0;
  Status s = status(cudaDeviceCanAccessPeer(&can, a, b));
  *yes = can != 0;
  return s;
}

Status enable_peer_access(int peer) {
  const cudaError_t e = cudaDeviceEnablePeerAccess(peer, 0);
  if (e != cudaErrorPeerAccessAlreadyEnabled) return status(e);  // by another library
  cudaGetLastError();
  return Status::success;
}

Status malloc(void** p, size_t nbytes) {
  ++mallocs;
  return status(cudaMalloc(p, nbytes));
}
Status free(void* p) { return status(cudaFree(p)); }
Status memory_info(size_t* free, size_t* total) { return status(cudaMemGetInfo(free, total)); }
Status host_malloc(void** p, size_t nbytes) {
  return status(cudaHostAlloc(p, nbytes, cudaHostAllocPortable | cudaHostAllocMapped));
}
Status host_free(void* p) { return status(cudaFreeHost(p)); }

bool is_page_locked(const void* p) {
  cudaPointerAttributes a{};
  if (cudaPointerGetAttributes(&a, p) == cudaSuccess) return a.type == cudaMemoryTypeHost;
  cudaGetLastError();
  return false;
}

Status va_granularity(int device, size_t* bytes) {
  VESTA_DRIVER(cuMemGetAllocationGranularity)
  CUmemAllocationProp p = allocation_on(device);
  return status(cuMemGetAllocationGranularity_(bytes, &p, CU_MEM_ALLOC_GRANULARITY_RECOMMENDED));
}
Status va_reserve(void** address, size_t nbytes) {
  VESTA_DRIVER(cuMemAddressReserve)
  CUdeviceptr p = 0;
  Status s = status(cuMemAddressReserve_(&p, nbytes, 0, 0, 0));
  *address = reinterpret_cast<void*>(p);
  return s;
}
Status va_release(void* address, size_t nbytes) {
  VESTA_DRIVER(cuMemAddressFree)
  return status(cuMemAddressFree_(CUdeviceptr(address), nbytes));
}
Status va_map(int device, void* at, size_t nbytes) {
  VESTA_DRIVER(cuMemCreate)
  VESTA_DRIVER(cuMemMap)
  VESTA_DRIVER(cuMemSetAccess)
  VESTA_DRIVER(cuMemRelease)
  VESTA_DRIVER(cuMemUnmap)
  CUmemAllocationProp p = allocation_on(device);
  CUmemGenericAllocationHandle memory;
  if (Status s = status(cuMemCreate_(&memory, nbytes, &p, 0)); s != Status::success) return s;
  Status s = status(cuMemMap_(CUdeviceptr(at), nbytes, 0, memory, 0));
  cuMemRelease_(memory);  // the mapping keeps the memory alive
  if (s != Status::success) return s;
  CUmemAccessDesc access{};
  access.location = p.location;
  access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
  s = status(cuMemSetAccess_(CUdeviceptr(at), nbytes, &access, 1));
  if (s != Status::success) cuMemUnmap_(CUdeviceptr(at), nbytes);
  return s;
}
Status va_unmap(void* at, size_t nbytes) {
  VESTA_DRIVER(cuMemUnmap)
  return status(cuMemUnmap_(CUdeviceptr(at), nbytes));
}

Status va_allow(int device, void* at, size_t nbytes) {
  VESTA_DRIVER(cuMemSetAccess)
  CUmemAccessDesc access{};
  access.location = allocation_on(device).location;
  access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
  return status(cuMemSetAccess_(CUdeviceptr(at), nbytes, &access, 1));
}

Status memcpy_async(void* to, const void* from, size_t nbytes, Copy kind, StreamHandle stream) {
  ++copies;
  return status(cudaMemcpyAsync(to, from, nbytes, cudaMemcpyKind(int(kind)), stream));
}
Status memcpy_peer_async(void* to, int to_device, const void* from, int from_device, size_t nbytes,
                         StreamHandle stream) {
  ++copies;
  return status(cudaMemcpyPeerAsync(to, to_device, from, from_device, nbytes, stream));
}
Status memset_async(void* to, int value, size_t nbytes, StreamHandle stream) {
  return status(cudaMemsetAsync(to, value, nbytes, stream));
}

Status stream_create(StreamHandle* stream, int priority) {
  return status(cudaStreamCreateWithPriority(stream, cudaStreamNonBlocking, priority));
}
Status stream_destroy(StreamHandle stream) { return status(cudaStreamDestroy(stream)); }
Status stream_synchronize(StreamHandle stream) {
  ++synchronizations;
  return status(cudaStreamSynchronize(stream));
}
Status stream_query(StreamHandle stream) { return status(cudaStreamQuery(stream)); }
Status stream_wait_event(StreamHandle stream, EventHandle event) {
  return status(cudaStreamWaitEvent(stream, event, 0));
}
Status stream_is_capturing(StreamHandle stream, bool* yes) {
  cudaStreamCaptureStatus s = cudaStreamCaptureStatusNone;
  Status result = status(cudaStreamIsCapturing(stream, &s));
  *yes = s != cudaStreamCaptureStatusNone;
  return result;
}

Status event_create(EventHandle* event, bool timing) {
  return status(cudaEventCreateWithFlags(event, timing ? cudaEventDefault : cudaEventDisableTiming));
}
Status event_destroy(EventHandle event) { return status(cudaEventDestroy(event)); }
Status event_record(EventHandle event, StreamHandle stream) { return status(cudaEventRecord(event, stream)); }
Status event_query(EventHandle event) { return status(cudaEventQuery(event)); }
Status event_synchronize(EventHandle event) {
  ++synchronizations;
  return status(cudaEventSynchronize(event));
}
Status event_elapsed(float* milliseconds, EventHandle begin, EventHandle end) {
  return status(cudaEventElapsedTime(milliseconds, begin, end));
}

constexpr unsigned kSharedWithoutAsking = 47 << 10;  // bytes that a block gets of any kernel, beside fixed arrays

Status launch(const char*, const void* kernel, const LaunchShape& shape, void** arguments) {
  ++launches;
  cudaLaunchConfig_t config{};
  config.gridDim = dim3(shape.grid[0], shape.grid[1], shape.grid[2]);
  config.blockDim = dim3(shape.block[0], shape.block[1], shape.block[2]);
  config.dynamicSmemBytes = shape.shared_bytes;
  config.stream = shape.stream;
  if (shape.shared_bytes > kSharedWithoutAsking) {
    const auto asked =
        cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, int(shape.shared_bytes));
    if (asked != cudaSuccess) return status(asked);
  }
  return status(cudaLaunchKernelExC(&config, kernel, arguments));
}

Counters counters() { return {launches, copies, mallocs, synchronizations, 0}; }

}  // namespace vesta::cuda::rt
