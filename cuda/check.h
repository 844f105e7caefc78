// Checked calls of the runtime: an error becomes an exception with the call's text, CUDA's name of the error and its
// meaning.
#pragma once
#include <cstdint>

#include <vesta/core/base/error.h>
#include <vesta/cuda/runtime.h>

namespace vesta::cuda {

/// Raises Error for a failed call: the cause is memory if memory ran out, else device.
[[noreturn]] void fail_status(rt::Status status, const char* call, const char* file, int line);
/// Raises for a refused launch, naming the op.
void check_launch(rt::Status status, const char* name);
/// Returns the size of a grid of `n` threads in blocks of `threads`; raises if it is more than a GPU takes.
VESTA_API unsigned block_count(uint64_t n, unsigned threads);

}  // namespace vesta::cuda

/// Calls the runtime and raises unless it returns success.
#define VESTA_CUDA_CHECK(call)                                                                      \
  do {                                                                                              \
    const ::vesta::cuda::rt::Status vesta_status = (call);                                          \
    if (vesta_status != ::vesta::cuda::rt::Status::success) [[unlikely]]                            \
      ::vesta::cuda::fail_status(vesta_status, #call, __FILE__, __LINE__);                          \
  } while (0)
/// Calls the runtime where nothing can catch an exception (destructors): a failure shows at the next checked call.
#define VESTA_CUDA_IGNORE(call) static_cast<void>(call)
