#include <vesta/multiprocessing/process_tie.h>

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdint>
#include <mutex>

namespace vesta::shared {
namespace {

// Without pidfds: the pipe whose end children see, and the end that only this process has.
std::mutex mutex;
int pipe_read = -1, pipe_write = -1;
bool closes_in_children = false;

/// In a forked child both belong to the parent.
void forget_in_child() {
  if (pipe_read >= 0) ::close(pipe_read);
  if (pipe_write >= 0) ::close(pipe_write);
  pipe_read = pipe_write = -1;
  mutex.unlock();
}

Descriptor life_by_pipe() {
  std::lock_guard lock(mutex);
  if (!closes_in_children) {
    pthread_atfork([] { mutex.lock(); }, [] { mutex.unlock(); }, forget_in_child);
    closes_in_children = true;
  }
  if (pipe_read < 0) {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC)) fail_with_errno("die_with", "pipe2", errno);
    pipe_read = ends[0], pipe_write = ends[1];
  }
  return Descriptor::duplicate(pipe_read);
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

Descriptor life_of_this_process() {
  Descriptor life(int(syscall(SYS_pidfd_open, getpid(), 0)));  // closed by exec
  if (life) return life;
  if (errno == EMFILE) fail_with_errno("die_with", "pidfd_open", errno);
  return life_by_pipe();
}

bool is_over(int fd) {
  pollfd p{fd, POLLIN, 0};
  return ::poll(&p, 1, 0) > 0 && (p.revents & (POLLIN | POLLHUP | POLLERR));
}

void die_with(int parent, int wake) {
  Descriptor kept = Descriptor::duplicate(parent);
  if (wake >= 0) {
    Descriptor own = Descriptor::duplicate(wake);
    const bool set = fcntl(own.get(), F_SETOWN, getpid()) == 0 && fcntl(own.get(), F_SETSIG, SIGCONT) == 0 &&
                     fcntl(own.get(), F_SETFL, fcntl(own.get(), F_GETFL) | O_ASYNC) == 0;
    if (!set) fail_with_errno("die_with", "fcntl", errno);
    own.release();  // owned by the process, as long as it lives
  }
  prctl(PR_SET_PDEATHSIG, SIGCONT);
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);  // signals are for the other threads
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
  pthread_attr_setstacksize(&attributes, size_t(1) << 20);
  pthread_t thread;
  const int code = pthread_create(&thread, &attributes, watch, reinterpret_cast<void*>(intptr_t(kept.get())));
  pthread_attr_destroy(&attributes);
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  if (code) fail_with_errno("die_with", "pthread_create", code);
  kept.release();  // owned by the thread, as long as the process lives
}

}  // namespace vesta::shared
