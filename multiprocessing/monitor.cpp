#include <vesta/multiprocessing/monitor.h>

#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <thread>

namespace vesta {
namespace {

constexpr int kTickMs = 100;

/// The monitor's thread and its data. It starts with the first group and ends with the last.
class Monitor {
 public:
  Monitor() : epoll_(epoll_create1(EPOLL_CLOEXEC)), stop_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)), pid_(getpid()) {
    listen(stop_.get(), EPOLLIN);
    thread_ = std::thread([this] { run(); });
  }
  ~Monitor() {
    const uint64_t one = 1;
    [[maybe_unused]] ssize_t n = write(stop_.get(), &one, sizeof one);
    if (getpid() != pid_ || thread_.get_id() == std::this_thread::get_id()) thread_.detach();
    else thread_.join();
  }
  void listen(int fd, uint32_t events) {
    epoll_event e{};
    e.events = events;
    e.data.fd = fd;
    epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &e);
  }
  int pid() const { return pid_; }

  std::mutex mutex;    // guards `watched`
  std::mutex looking;  // held while look() runs
  std::vector<std::shared_ptr<Watched>> watched;

 private:
  void run() {
    for (;;) {
      epoll_event events[16];
      const int n = epoll_wait(epoll_.get(), events, 16, kTickMs);
      for (int i = 0; i < n; ++i) {
        if (events[i].data.fd == stop_.get()) return;
      }
      std::lock_guard busy(looking);
      std::vector<std::shared_ptr<Watched>> all;
      {
        std::lock_guard lock(mutex);
        all = watched;
      }
      for (auto& who : all) who->look();
    }
  }

  wire::Fd epoll_, stop_;
  int pid_;
  std::thread thread_;
};

std::mutex monitor_mutex;
Monitor* monitor = nullptr;

}  // namespace

void watch(std::shared_ptr<Watched> who, Mesh& mesh) {
  std::lock_guard lock(monitor_mutex);
  if (!monitor || monitor->pid() != getpid()) monitor = new Monitor;  // after fork, the parent's has no thread here
  // Only the end of a connection wakes the thread: the threads that wait for data read them.
  mesh.each_descriptor([](int fd) { monitor->listen(fd, EPOLLRDHUP | EPOLLET); });
  std::lock_guard inner(monitor->mutex);
  monitor->watched.push_back(std::move(who));
}

void unwatch(const Watched* who) {
  std::unique_lock lock(monitor_mutex);
  if (!monitor || monitor->pid() != getpid()) return;
  bool last = false;
  {
    std::lock_guard busy(monitor->looking);
    std::lock_guard inner(monitor->mutex);
    std::erase_if(monitor->watched, [&](const auto& w) { return w.get() == who; });
    last = monitor->watched.empty();
  }
  if (!last) return;
  std::unique_ptr<Monitor> ended(monitor);
  monitor = nullptr;
}

}  // namespace vesta
