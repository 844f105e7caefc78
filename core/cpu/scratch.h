// Working memory of the CPU kernels: per thread, reused from call to call.
#pragma once

#include <cstddef>

namespace vesta::cpu {

/// The uses that may be alive at the same time in one thread.
enum class Scratch : unsigned char {
  pack_a,
  pack_b,
  partial,
  operand_a,
  operand_b,
  result,
  input,
  weights,
  output,
  bias,
  count
};

/// Returns at least `bytes` bytes, 64-byte aligned, with undefined contents, that stay valid until this thread requests
/// the same slot again. Buffers grow to the largest request and are kept up to 64 MiB each until the thread ends; they
/// come from the allocator of tensors and go back to its cache. Throws Error(memory).
void* thread_scratch(Scratch slot, std::size_t bytes);

/// Frees this thread's buffer of `slot` if it is larger than what is kept between calls (64 MiB).
void trim_scratch(Scratch slot);

/// A slot held for one scope and trimmed at its end.
template <class T>
class ScratchArray {
 public:
  ScratchArray(Scratch slot, std::size_t count)
      : slot_(slot), data_(static_cast<T*>(thread_scratch(slot, count * sizeof(T)))) {}
  ~ScratchArray() { trim_scratch(slot_); }
  ScratchArray(const ScratchArray&) = delete;
  ScratchArray& operator=(const ScratchArray&) = delete;
  T* data() const { return data_; }

 private:
  Scratch slot_;
  T* data_;
};

}  // namespace vesta::cpu
