// The GIL: taking it on threads of the library's, releasing it around long work, and the fate of a thread that returns
// while the interpreter ends.
//
// Note [Threads at the end of the interpreter]
// When the main thread ends the interpreter, other threads may still compute. One that then requests the GIL is ended
// by CPython (until 3.13) with pthread_exit, which unwinds its stack like an exception. Our frames cannot take part in
// that: destructors are noexcept, which ends the process by SIGABRT, and those that hold Python references would give
// them back without the GIL. So a thread that can no longer get the GIL is parked at its request: it waits, and ends
// with the process. Python itself does so from 3.14 on. Where C++ calls Python code, the code may be where the thread
// is ended: call_python() parks it there, before our frames are unwound.
#pragma once
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <cxxabi.h>

#include <atomic>

namespace vesta::python {

/// Returns whether this thread may use Python objects: the interpreter is running, or is being finalized by this
/// thread, which still collects garbage and traverses each object.
bool has_python() noexcept;
/// Stops this thread until the process ends.
[[noreturn]] void park() noexcept;
/// Takes the GIL, or parks the thread if it is too late.
PyGILState_STATE take_gil() noexcept;
/// Releases the GIL, after `before_release` if that is set.
PyThreadState* release_gil();
/// A function that sees the Python thread's stack before it releases the GIL: the profiler's, while one runs.
extern std::atomic<void (*)()> before_release;
/// Takes the GIL back after release_gil, or parks.
void take_gil_back(PyThreadState* state) noexcept;
/// Notes that this is the thread that will end the interpreter.
void set_main_thread();

/// A guard that holds the GIL while it lives; for code that may run on a thread of the library's.
class Gil {
 public:
  Gil() : state_(take_gil()) {}
  ~Gil() { PyGILState_Release(state_); }
  Gil(const Gil&) = delete;

 private:
  PyGILState_STATE state_;
};

/// A guard that releases the GIL while it lives, if `when`: for work that is long and touches no Python object.
class WithoutGil {
 public:
  explicit WithoutGil(bool when = true) : state_(when ? release_gil() : nullptr) {}
  ~WithoutGil() {
    if (state_) take_gil_back(state_);
  }
  WithoutGil(const WithoutGil&) = delete;

 private:
  PyThreadState* state_;
};

/// Runs `f`, which calls Python code, and parks the thread if it is ended there.
template <class F>
auto run_python(F f) -> decltype(f()) {
  try {
    return f();
  } catch (const abi::__forced_unwind&) {
    park();
  }
}
/// Calls a Python object with positional arguments; returns a new reference, or null and an exception.
template <class... A>
PyObject* call_python(PyObject* function, A... arguments) {
  return run_python([&] { return PyObject_CallFunctionObjArgs(function, arguments..., nullptr); });
}

}  // namespace vesta::python
