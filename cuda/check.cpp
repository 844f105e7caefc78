#include <vesta/cuda/check.h>

namespace vesta::cuda {

void fail_status(rt::Status status, const char* call, const char* file, int line) {
  const Cause cause = status == rt::Status::out_of_memory ? Cause::memory : Cause::device;
  std::string advice;
  switch (status) {
    case rt::Status::insufficient_driver:
    case rt::Status::no_device:
      advice = " No CUDA device is usable: check the driver with nvidia-smi and CUDA_VISIBLE_DEVICES.";
      break;
    case rt::Status::illegal_address:
      advice = " The device is unusable from here on; run with CUDA_LAUNCH_BLOCKING=1 to find the kernel.";
      break;
    default: break;
  }
  fail(cause, "CUDA error: ", rt::status_text(status), " (", rt::status_name(status), ") in ", call, " at ", file, ":",
       line, ".", advice);
}

void check_launch(rt::Status status, const char* name) {
  if (status != rt::Status::success) [[unlikely]]
    fail_status(status, name, "kernel launch", 0);
}

unsigned block_count(uint64_t n, unsigned threads) {
  constexpr uint64_t kMost = (uint64_t(1) << 31) - 1;
  const uint64_t blocks = n / threads + (n % threads != 0);
  VESTA_CHECK(blocks <= kMost, runtime, "A kernel on CUDA would need ", blocks, " blocks of ", threads,
              " threads, and a GPU takes at most ", kMost, " blocks: call the op on parts of the tensor.");
  return unsigned(blocks);
}

}  // namespace vesta::cuda
