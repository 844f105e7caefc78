#include <vesta/core/cpu/allocator.h>
#include <vesta/core/cpu/scratch.h>

#include <algorithm>

namespace vesta::cpu {
namespace {

constexpr std::size_t kKept = std::size_t{64} << 20;

struct Buffer {
  HostArray<char> memory;
  std::size_t bytes = 0;
  void release() {
    memory = HostArray<char>();
    bytes = 0;
  }
};

thread_local Buffer buffers[static_cast<std::size_t>(Scratch::count)];

Buffer& buffer_of(Scratch slot) { return buffers[static_cast<std::size_t>(slot)]; }

}  // namespace

void* thread_scratch(Scratch slot, std::size_t bytes) {
  Buffer& buffer = buffer_of(slot);
  if (bytes <= buffer.bytes && buffer.bytes) return buffer.memory.data();
  // Grow by at least half, so that a slowly growing size does not allocate every time.
  const std::size_t wanted =
      bytes > kKept ? bytes : std::max({bytes, buffer.bytes + buffer.bytes / 2, std::size_t{64}});
  buffer.release();
  buffer.memory = HostArray<char>(wanted);
  buffer.bytes = wanted;
  return buffer.memory.data();
}

void trim_scratch(Scratch slot) {
  Buffer& buffer = buffer_of(slot);
  if (buffer.bytes > kKept) buffer.release();
}

}  // namespace vesta::cpu
