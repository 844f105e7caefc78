#include "gil.h"

#include <pthread.h>
#include <unistd.h>

namespace vesta::python {
namespace {

unsigned long main_thread = 0;

bool is_ending() {
#if PY_VERSION_HEX >= 0x030d0000
  return Py_IsFinalizing() || !Py_IsInitialized();
#else
  return _Py_IsFinalizing() || !Py_IsInitialized();
#endif
}

}  // namespace

void set_main_thread() {
  main_thread = PyThread_get_thread_ident();
  pthread_atfork(nullptr, nullptr, [] { main_thread = PyThread_get_thread_ident(); });
}

bool has_python() noexcept {
  return Py_IsInitialized() ||
         (PyThread_get_thread_ident() == main_thread && PyGILState_GetThisThreadState() != nullptr);
}

void park() noexcept {
  for (;;) pause();  // a signal's handler may return
}

PyGILState_STATE take_gil() noexcept {
  // A thread that Python does not know yet would make its state in an interpreter that is being taken apart.
  if (is_ending() && PyThread_get_thread_ident() != main_thread) park();
  try {
    return PyGILState_Ensure();
  } catch (const abi::__forced_unwind&) {
    park();
  }
}

std::atomic<void (*)()> before_release{nullptr};

PyThreadState* release_gil() {
  if (void (*f)() = before_release.load(std::memory_order_relaxed)) [[unlikely]]
    f();
  return PyEval_SaveThread();
}

void take_gil_back(PyThreadState* state) noexcept {
  try {
    PyEval_RestoreThread(state);
  } catch (const abi::__forced_unwind&) {
    park();
  }
}

}  // namespace vesta::python
