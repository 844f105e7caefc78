#include <vesta/cuda/nccl/communicator.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include <vesta/cuda/device_wait.h>
#include <vesta/cuda/fault.h>

namespace vesta::cuda::nccl {
namespace {

constexpr auto kClosePatience = std::chrono::seconds(10);  // for ncclCommFinalize, before an abort
constexpr auto kCallPatience = std::chrono::seconds(1);    // for a running call, before an abort ignores it

/// Returns the time that NCCL has for the abort of one communicator.
std::chrono::milliseconds abort_patience() {
  constexpr double kSeconds = 60, kMost = 86400;
  const char* given = std::getenv("VESTA_NCCL_ABORT_TIMEOUT");
  char* end = nullptr;
  const double seconds = given && *given ? std::strtod(given, &end) : kSeconds;
  VESTA_CHECK(!end || (end != given && !*end && std::isfinite(seconds) && seconds >= 0), value,
              "nccl: expected a number of seconds, finite and not negative, got '", given,
              "' (VESTA_NCCL_ABORT_TIMEOUT).");
  return std::chrono::milliseconds(int64_t(1000 * std::min(seconds, kMost)));
}

/// The progress of an abort, which the thread inside NCCL keeps when it is left behind.
struct Progress {
  std::mutex mutex;
  std::condition_variable changed;
  size_t ended = 0;
};

}  // namespace

void FailureNotice::post(const std::vector<int>& devices, std::exception_ptr error) {
  std::lock_guard lock(mutex_);
  if (told_ || devices.empty()) return;
  told_ = true;
  for (int d : devices) post_failure(d, this, error);
}

void FailureNotice::heard() {
  std::lock_guard lock(mutex_);
  told_ = true;
  retract_failure(this);
}

void Backoff::sleep() {
  std::this_thread::sleep_for(std::chrono::microseconds(microseconds_));
  microseconds_ = std::min(microseconds_ + microseconds_ / 2, 1000);
}

Communicator::Communicator(int device, int rank, int size)
    : stream_(take_own_stream(device)), rank_(rank), size_(size) {
  expect_loss();
}

Communicator::~Communicator() {
  abort();
  return_own_stream(stream_);
}

Comm Communicator::live() const {
  Comm c = comm_.load();
  if (!c) distributed_fail(DistributedCause::backend, "the communicator was aborted.");
  return c;
}

void Communicator::connect(const UniqueId& id) {
  std::lock_guard lock(calling_);
  DeviceGuard guard(device());
  Config config;
  config.blocking = 0;
  Comm made = nullptr;
  last_call_ = "ncclCommInitRankConfig";
  check(functions().comm_init(&made, size_, id, rank_, &config), last_call_);
  comm_ = made;
}

void Communicator::queue(const std::function<void(Comm)>& f) {
  const Functions& n = functions();
  std::lock_guard lock(calling_);
  Comm comm = live();
  DeviceGuard guard(device());
  last_call_ = "ncclGroupEnd";
  check(n.group_start(), "ncclGroupStart", comm);
  try {
    f(comm);
  } catch (...) {
    n.group_end();
    throw;
  }
  check(n.group_end(), last_call_, comm);
}

bool Communicator::settled() {
  std::lock_guard lock(calling_);
  Comm comm = live();
  Result state = success;
  check(functions().comm_async_error(comm, &state), "ncclCommGetAsyncError", comm);
  check(state, last_call_, comm);
  return state == success;
}

void Communicator::settle(const Look& look) {
  for (Backoff pause; !settled(); pause.sleep()) look();
}

std::string Communicator::async_error() {
  std::unique_lock lock(calling_, std::try_to_lock);
  Comm comm = lock ? comm_.load() : nullptr;
  if (!comm) return {};
  Result state = success;
  if (Result r = functions().comm_async_error(comm, &state); r != success) state = r;
  if (state == success || state == in_progress) return {};
  return "NCCL reports an asynchronous error: " + describe(state, last_call_, comm);
}

void Communicator::abort() noexcept {
  std::unique_lock lock(calling_, kCallPatience);  // a thread stuck in a call is freed by the abort itself
  Comm comm = comm_.exchange(nullptr);
  if (lock) lock.unlock();
  if (comm) functions().comm_abort(comm);
}

void Communicator::close() noexcept {
  std::unique_lock lock(calling_);
  Comm comm = comm_.exchange(nullptr);
  if (!comm) return;
  const Functions& n = functions();
  DeviceGuard guard(device());
  Result state = n.comm_finalize(comm);
  const auto end = deadline_in(kClosePatience);
  for (Backoff pause; state == in_progress && Clock::now() < end; pause.sleep()) n.comm_async_error(comm, &state);
  if (state == success) n.comm_destroy(comm);
  else n.comm_abort(comm);
}

Communicators::Communicators(std::string group, FailureNotice& notice)
    : group_(std::move(group)), notice_(notice), patience_(abort_patience()) {}
Communicators::~Communicators() { close(); }

std::shared_ptr<Communicator> Communicators::add(int device, int rank, int size) {
  auto made = std::make_shared<Communicator>(device, rank, size);
  std::lock_guard lock(mutex_);
  if (aborting_) distributed_fail(DistributedCause::backend, "the group has failed.");
  all_.push_back(made);
  return made;
}

void Communicators::abort(const std::string& reason) noexcept {
  std::lock_guard lock(mutex_);
  if (aborting_.exchange(true)) return;
  thread_ = std::thread([this, reason] { abort_all(reason); });
}

void Communicators::abort_all(const std::string& reason) noexcept {
  std::vector<std::shared_ptr<Communicator>> all;
  {
    std::lock_guard lock(mutex_);
    all = all_;
  }
  std::vector<int> devices;
  for (auto& c : all) {
    if (c->busy()) devices.push_back(c->device());
  }
  // Before the abort: it ends the waits, and a thread that leaves one must not take unwritten memory for values.
  notice_.post(devices, std::make_exception_ptr(DistributedError(DistributedCause::backend, reason)));
  auto progress = std::make_shared<Progress>();
  std::thread worker([all, progress] {
    for (auto& c : all) {
      c->abort();
      std::lock_guard lock(progress->mutex);
      ++progress->ended;
      progress->changed.notify_all();
    }
  });
  bool moves = true;
  {
    std::unique_lock lock(progress->mutex);
    for (size_t ended = 0; moves && ended < all.size(); ended = progress->ended) {
      moves = progress->changed.wait_for(lock, patience_, [&] { return progress->ended > ended; });
    }
  }
  if (moves) {
    worker.join();
  } else {
    worker.detach();  // inside NCCL, for good
    give_up(all, reason);
  }
  std::lock_guard lock(mutex_);
  aborted_ = true;
  changed_.notify_all();
}

void Communicators::give_up(const std::vector<std::shared_ptr<Communicator>>& all, const std::string& reason) noexcept {
  const std::string whole =
      text("group '", group_, "': NCCL did not end its operations within ", patience_.count() / 1000.0,
           " s of being told to (VESTA_NCCL_ABORT_TIMEOUT), and the device hangs. End this process. "
           "The group had failed: ",
           reason);
  for (auto& c : all) {
    lose_device(c->device(), std::make_exception_ptr(DistributedError(DistributedCause::backend, whole)));
  }
}

void Communicators::wait_aborted() noexcept {
  std::unique_lock lock(mutex_);
  if (aborting_) changed_.wait(lock, [&] { return aborted_; });
}

void Communicators::close() noexcept {
  if (thread_.joinable()) thread_.join();
  std::vector<std::shared_ptr<Communicator>> all;
  {
    std::lock_guard lock(mutex_);
    all.swap(all_);
  }
  for (auto& c : all) c->close();
}

}  // namespace vesta::cuda::nccl
