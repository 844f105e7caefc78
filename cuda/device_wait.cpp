#include <vesta/cuda/device_wait.h>

#include <array>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <thread>

#include <vesta/cuda/device.h>

namespace vesta::cuda {
namespace {

constexpr auto kLook = std::chrono::milliseconds(20);  // how often a waiting caller asks whether the device is lost

std::atomic<bool> loss_expected{false};
std::atomic<bool> any_lost{false};
std::mutex lock;
std::array<std::exception_ptr, kMaxDevices>& lost() {
  static auto* errors = new std::array<std::exception_ptr, kMaxDevices>;  // kept: threads may outlive static objects
  return *errors;
}

void raise_if_lost(int device) {
  if (!any_lost.load(std::memory_order_acquire)) return;
  std::exception_ptr error;
  {
    std::lock_guard guard(lock);
    error = lost()[size_t(device)];
  }
  if (error) std::rethrow_exception(error);
}

/// What the caller and the thread that waits for it share.
struct Wait {
  std::mutex lock;
  std::condition_variable changed;
  bool done = false;
  rt::Status status = rt::Status::success;
};

}  // namespace

rt::Status wait_for_device(int device, std::function<rt::Status()> wait) {
  if (!loss_is_expected()) return wait();
  raise_if_lost(device);
  auto shared = std::make_shared<Wait>();
  std::thread([shared, device, wait = std::move(wait)] {
    DeviceGuard current(device);
    const rt::Status status = wait();
    std::lock_guard guard(shared->lock);
    shared->done = true, shared->status = status;
    shared->changed.notify_all();
  }).detach();
  std::unique_lock guard(shared->lock);
  while (!shared->changed.wait_for(guard, kLook, [&] { return shared->done; })) raise_if_lost(device);
  return shared->status;
}

bool loss_is_expected() { return loss_expected.load(std::memory_order_acquire); }
void expect_loss() { loss_expected.store(true, std::memory_order_release); }

void lose_device(int device, std::exception_ptr error) {
  std::lock_guard guard(lock);
  lost()[size_t(device)] = std::move(error);
  any_lost.store(true, std::memory_order_release);
}

}  // namespace vesta::cuda
