#include <vesta/core/cpu/scratch.h>

#include <cstdlib>
#include <new>

namespace vesta::cpu {
namespace {

constexpr std::size_t kKept = std::size_t{64} << 20, kAlign = 64;

struct Buffer {
  void* data = nullptr;
  std::size_t bytes = 0;
  void release() {
    std::free(data);
    data = nullptr;
    bytes = 0;
  }
  ~Buffer() { release(); }
};

thread_local Buffer buffers[static_cast<std::size_t>(Scratch::count)];

Buffer& buffer_of(Scratch slot) { return buffers[static_cast<std::size_t>(slot)]; }

}  // namespace

void* thread_scratch(Scratch slot, std::size_t bytes) {
  Buffer& buffer = buffer_of(slot);
  if (bytes <= buffer.bytes && buffer.data != nullptr) return buffer.data;
  // Grow by at least half, so that a slowly growing size does not allocate every time.
  const std::size_t wanted =
      bytes > kKept ? bytes : (bytes > buffer.bytes + buffer.bytes / 2 ? bytes : buffer.bytes + buffer.bytes / 2);
  const std::size_t rounded = (wanted + kAlign) / kAlign * kAlign;
  buffer.release();
  buffer.data = std::aligned_alloc(kAlign, rounded);
  if (buffer.data == nullptr) throw std::bad_alloc();
  buffer.bytes = rounded;
  return buffer.data;
}

void trim_scratch(Scratch slot) {
  Buffer& buffer = buffer_of(slot);
  if (buffer.bytes > kKept + kAlign) buffer.release();
}

}  // namespace vesta::cpu
