#include <vesta/core/storage.h>

#include <algorithm>
#include <cstring>
#include <new>

#include <vesta/core/backend.h>
#include <vesta/core/packed_weights.h>
#include <vesta/core/pool.h>

namespace vesta {
namespace {
constexpr size_t kHeader = 64;
constexpr size_t kMaxInline = pool::kMaxBytes - kHeader;
constinit thread_local int64_t balance __attribute__((tls_model("initial-exec"))) = 0;
}  // namespace

PackedPort packed_port;
constinit thread_local bool packed_weights_unwanted __attribute__((tls_model("initial-exec"))) = false;

StoragePtr Storage::allocate(size_t nbytes, Device device) {
  if (device.type() == DeviceType::cpu && nbytes <= kMaxInline) {
    balance += int64_t(nbytes);
    void* block = pool::take(kHeader + nbytes);
    auto* s = new (block) Storage;
    s->data_ = static_cast<char*>(block) + kHeader;
    s->nbytes_ = nbytes;
    s->block_ = uint16_t(kHeader + nbytes);
    return StoragePtr::first(s);
  }
  Memory memory = backend(device.type()).allocate(nbytes, device);
  auto* s = new (pool::take(kHeader)) Storage;
  s->data_ = memory.data, s->nbytes_ = nbytes, s->device_ = device;
  s->context_ = memory.context, s->deleter_ = memory.deleter;
  if (device.type() == DeviceType::cpu) balance += int64_t(nbytes);
  return StoragePtr::first(s);
}

int64_t Storage::thread_balance() noexcept { return balance; }

StoragePtr Storage::wrap(void* data, size_t nbytes, Device device, void* context, Deleter deleter, bool read_only) {
  auto* s = new (pool::take(kHeader)) Storage;
  s->data_ = data, s->nbytes_ = nbytes, s->device_ = device;
  s->context_ = context, s->deleter_ = deleter;
  s->read_only_ = read_only, s->lent_ = true;
  return StoragePtr::first(s);
}

void Storage::destroy(Storage* s) noexcept {
  size_t block = s->block_;
  if (!s->lent_ && s->device_.type() == DeviceType::cpu) [[likely]]
    balance -= int64_t(s->nbytes_);
  if (s->deleter_) [[unlikely]] {
    if (s->packed_) packed_port.drop(s);
    s->deleter_(s->context_);
  }
  s->~Storage();
  pool::give(s, block);
}

void Storage::forget_packed() const {
  handed_out_ = true;
  if (packed_) packed_port.drop(this);
}

void Storage::resize(size_t nbytes) {
  VESTA_CHECK(!lent_, runtime,
              "resize_: expected a tensor that owns its memory, got one that borrows it. Clone it first.");
  Memory memory = backend(device_.type()).allocate(nbytes, device_);
  backend(device_.type()).copy_bytes(memory.data, data_, std::min(nbytes, nbytes_), device_);
  if (deleter_) deleter_(context_);
  if (device_.type() == DeviceType::cpu) balance += int64_t(nbytes) - int64_t(nbytes_);
  data_ = memory.data, nbytes_ = nbytes, context_ = memory.context, deleter_ = memory.deleter;
  bump_unversioned();
}

Memory Storage::move_to(const Memory& memory) {
  VESTA_ASSERT(device_.type() == DeviceType::cpu);
  if (nbytes_) std::memcpy(memory.data, data_, nbytes_);
  const Memory old{data_, context_, deleter_};
  data_ = memory.data, context_ = memory.context, deleter_ = memory.deleter;
  if (!lent_) balance -= int64_t(nbytes_);
  lent_ = true, read_only_ = false;
  if (packed_) packed_port.drop(this);
  return old;
}

}  // namespace vesta
