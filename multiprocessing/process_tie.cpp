#include <vesta/multiprocessing/process_tie.h>

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <mutex>

namespace vesta::shared {
namespace {

std::mutex mutex;
int life = -1;        // ready when this process has died; inherited by children
int life_write = -1;  // where it is a pipe: its other end, in this process only
bool closes_in_children = false;

/// In a forked child both speak of the parent.
void forget_in_child() {
  if (life >= 0) ::close(life);
  if (life_write >= 0) ::close(life_write);
  life = life_write = -1;
  mutex.unlock();
}

void* watch(void* argument) {
  const int fd = int(reinterpret_cast<intptr_t>(argument));
  while (!is_over(fd)) {
    pollfd p{fd, POLLIN, 0};
    ::poll(&p, 1, 1000);
  }
  ::kill(getpid(), SIGKILL);
  return nullptr;
}

}  // namespace

int life_of_this_process() {
  std::lock_guard lock(mutex);
  if (life >= 0) return life;
  if (!closes_in_children) {
    pthread_atfork([] { mutex.lock(); }, [] { mutex.unlock(); }, forget_in_child);
    closes_in_children = true;
  }
  life = int(syscall(SYS_pidfd_open, getpid(), 0));  // closed by exec
  if (life < 0) {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC)) fail_with_errno("die_with", "pipe2", errno);
    life = ends[0], life_write = ends[1];
  }
  return life;
}

bool is_over(int fd) {
  pollfd p{fd, POLLIN, 0};
  return ::poll(&p, 1, 0) > 0 && (p.revents & (POLLIN | POLLHUP | POLLERR));
}

void die_with(int parent) {
  Descriptor kept = Descriptor::duplicate(parent);
  prctl(PR_SET_PDEATHSIG, SIGCONT);
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);  // signals are the other threads' business
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
  pthread_attr_setstacksize(&attributes, size_t(1) << 20);
  pthread_t thread;
  const int code = pthread_create(&thread, &attributes, watch, reinterpret_cast<void*>(intptr_t(kept.get())));
  pthread_attr_destroy(&attributes);
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  if (code) fail_with_errno("die_with", "pthread_create", code);
  kept.release();  // the thread's, for as long as the process lives
}

}  // namespace vesta::shared
