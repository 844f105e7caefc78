// What the library is set to, and questions about dtypes: default dtype, threads, promotion, ranges.
#include <pthread.h>

#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include <vesta/core/denormals.h>
#include <vesta/core/base/interrupt.h>
#include <vesta/core/base/waiting.h>
#include <vesta/core/base/warning.h>
#include <vesta/core/cpu/parallel.h>
#include <vesta/core/ops/examples.h>
#include <vesta/core/ops/linalg.h>
#include <vesta/core/ops/promotion.h>
#include <vesta/core/precision.h>
#include <vesta/core/torch_rules.h>

#include "dtype_device.h"
#include "factories.h"
#include "hand.h"

namespace vesta::python {
namespace {

DType dtype_arg(const Table& t, int i, Bound& b) {
  DType d;
  if (!to_dtype(b.slot[i], d)) wrong_type(t, i, "vesta.dtype", b.slot[i]);
  return d;
}

struct GetDefaultDtype {
  static constexpr char name[] = "get_default_dtype", params[] = "()", doc[] = "The dtype that Python floats become.";
  static PyObject* run(const Table&, Bound&) { return wrap_dtype(default_dtype()); }
};
struct SetDefaultDtype {
  static constexpr char name[] = "set_default_dtype", params[] = "(object d)",
                        doc[] = "Sets the dtype that Python floats become; a floating-point one.";
  static PyObject* run(const Table& t, Bound& b) {
    DType d = dtype_arg(t, 0, b);
    if (!is_float(d)) type_error("only floating-point types are supported as the default type");
    set_default_dtype(d);
    Py_RETURN_NONE;
  }
};
struct SetNumThreads {
  static constexpr char name[] = "set_num_threads", params[] = "(int64_t num)",
                        doc[] = "Sets how many threads an op may use.";
  static PyObject* run(const Table& t, Bound& b) {
    int64_t n = Arg<int64_t>(t, 0, b).get();
    VESTA_CHECK(n > 0 && n <= 65536, runtime, "set_num_threads: expected a positive integer, got ", n, ".");
    cpu::set_num_threads(int(n));
    Py_RETURN_NONE;
  }
};
struct SetFlushDenormal {
  static constexpr char name[] = "set_flush_denormal", params[] = "(bool mode)",
                        doc[] =
                            "Takes denormal numbers for 0 in what this thread computes on the CPU, or keeps them; "
                            "returns whether the processor can.";
  static PyObject* run(const Table& t, Bound& b) {
    return PyBool_FromLong(set_flush_denormal(Arg<bool>(t, 0, b).get()));
  }
};
struct GetNumThreads {
  static constexpr char name[] = "get_num_threads", params[] = "()", doc[] = "How many threads an op may use.";
  static PyObject* run(const Table&, Bound&) { return PyLong_FromLong(cpu::num_threads()); }
};
struct SetLapackFolder {
  static constexpr char name[] = "_set_lapack_folder", params[] = "(Text folders)",
                        doc[] = "Names folders, with ':' in between, in which OpenBLAS is looked for.";
  static PyObject* run(const Table& t, Bound& b) {
    set_lapack_folder(std::string(Arg<Text>(t, 0, b).get()));
    Py_RETURN_NONE;
  }
};
struct PromoteTypes {
  static constexpr char name[] = "promote_types", params[] = "(object type1, object type2)",
                        doc[] = "The smallest dtype that both convert to.";
  static PyObject* run(const Table& t, Bound& b) { return wrap_dtype(promote(dtype_arg(t, 0, b), dtype_arg(t, 1, b))); }
};
struct CanCast {
  static constexpr char
      name[] = "can_cast",
      params[] = "(object from_, object to)",
      doc[] = "Whether values of one dtype may be written to a tensor of another without a change of kind.";
  static PyObject* run(const Table& t, Bound& b) {
    return PyBool_FromLong(can_cast(dtype_arg(t, 0, b), dtype_arg(t, 1, b)));
  }
};
struct ResultType {
  static constexpr char name[] = "result_type",
                        doc[] = "The dtype that an operation of these two (tensors or numbers) computes in.";
  static constexpr const char* forms[] = {"(const Tensor& tensor, const Tensor& other)",
                                          "(const Tensor& tensor, Scalar other)",
                                          "(Scalar scalar, const Tensor& tensor)", "(Scalar scalar1, Scalar scalar2)"};
  static PyObject* run(const Table& t, Bound& b) {
    std::vector<Tensor> list;
    for (int i = 0; i < 2; ++i) {
      Scalar number;
      if (is_tensor(b.slot[i])) list.push_back(unwrap(b.slot[i]));
      else if (number_of(b.slot[i], number)) list.push_back(wrapped(number));
      else wrong_type(t, i, "Tensor or Number", b.slot[i]);
    }
    return wrap_dtype(result_type(list));
  }
};

/// Reads, or with a second argument sets, a switch of core/precision.h; vesta.backends gives them their names.
struct ProductSwitch {
  static constexpr char
      name[] = "_product_switch",
      params[] = "(int64_t which, object value = {})",
      doc[] =
          "A switch of how results are computed: 0 matmul TF32, 1 convolution TF32, 2 cuDNN, 3 algorithms "
          "that are not deterministic, 4 deterministic ones only, 5 cuDNN's attention, 6 relu by cuBLASLt.";
  static PyObject* run(const Table& t, Bound& b) {
    ProductSettings& s = product_settings();
    std::atomic<bool>* switches[] = {&s.matmul_allow_tf32,         &s.convolution_allow_tf32, &s.convolution_library,
                                     &s.allow_nondeterministic,    &s.deterministic_only,     &s.attention_library,
                                     &s.matmul_allow_relu_epilogue};
    const int64_t which = Arg<int64_t>(t, 0, b).get();
    VESTA_CHECK(which >= 0 && which < 7, value, "_product_switch: expected 0 to 6, got ", which, ".");
    if (PyObject* value = b.slot[1]; value && value != Py_None) {
      if (!PyBool_Check(value)) wrong_type(t, 1, "bool", value);
      *switches[which] = value == Py_True;
    }
    return PyBool_FromLong(*switches[which]);
  }
};

/// Makes operations compute what PyTorch computes where they would raise; vesta.as_torch sets it.
struct FollowTorch {
  static constexpr char name[] = "_follow_torch", params[] = "(bool on)",
                        doc[] = "Whether operations compute what PyTorch computes where they would raise otherwise.";
  static PyObject* run(const Table& t, Bound& b) {
    follow_torch(Arg<bool>(t, 0, b).get());
    Py_RETURN_NONE;
  }
};

/// Shows the library's warnings as Python's. One that a filter turns into an exception cannot leave C++ here, so it is
/// reported and dropped.
void show_warning(const std::string& text) {
  Gil gil;
  PyObject *type, *value, *trace;
  PyErr_Fetch(&type, &value, &trace);
  if (PyErr_WarnEx(PyExc_UserWarning, text.c_str(), 1) != 0) PyErr_WriteUnraisable(nullptr);
  PyErr_Restore(type, value, trace);
}

/// Lets go of the GIL while the library waits, wherever it is called from.
void* begin_waiting() { return Py_IsInitialized() && PyGILState_Check() ? PyEval_SaveThread() : nullptr; }
void end_waiting(void* state) { take_gil_back(static_cast<PyThreadState*>(state)); }

/// Returns a dict of a floating dtype's limits; the class around it is Python's.
struct FloatLimits {
  static constexpr char name[] = "_finfo", params[] = "(object dtype)", doc[] = "The limits of a floating-point dtype.";
  static PyObject* run(const Table& t, Bound& b) {
    DType d = real_type(dtype_arg(t, 0, b));
    struct Limits {
      int bits, digits, max_exponent;
    };
    static constexpr Limits kHalf{16, 11, 16}, kBFloat{16, 8, 128}, kFloat{32, 24, 128}, kDouble{64, 53, 1024};
    if (!is_float(d)) type_error("vesta.finfo() requires a floating point input type. Use vesta.iinfo.");
    Limits l = d == DType::float16 ? kHalf : d == DType::bfloat16 ? kBFloat : d == DType::float32 ? kFloat : kDouble;
    double eps = std::ldexp(1.0, 1 - l.digits);
    double max = std::ldexp(2.0 - eps, l.max_exponent - 1), tiny = std::ldexp(1.0, 2 - l.max_exponent);
    double resolution = std::pow(10.0, -std::floor((l.digits - 1) * std::log10(2.0)));
    return Py_BuildValue("{s:i,s:d,s:d,s:d,s:d,s:d,s:d}", "bits", l.bits, "eps", eps, "max", max, "min", -max, "tiny",
                         tiny, "smallest_normal", tiny, "resolution", resolution);
  }
};
struct IntLimits {
  static constexpr char name[] = "_iinfo", params[] = "(object dtype)", doc[] = "The limits of an integer dtype.";
  static PyObject* run(const Table& t, Bound& b) {
    DType d = dtype_arg(t, 0, b);
    if (!is_integral(d)) type_error("vesta.iinfo() requires an integer input type. Use vesta.finfo.");
    return visit<kIntegers>(d, []<class T>() {
      return Py_BuildValue("{s:i,s:L,s:L}", "bits", int(sizeof(T) * 8), "max",
                           static_cast<long long>(std::numeric_limits<T>::max()), "min",
                           static_cast<long long>(std::numeric_limits<T>::min()));
    });
  }
};

// ---- vmap ----

struct EnterExamples {
  static constexpr char name[] = "_enter_examples", params[] = "(TensorList examples, IntList shifts)",
                        doc[] =
                            "Makes these the examples that a function runs on, each a view so many elements behind the "
                            "first of its batch, until _leave_examples().";
  static PyObject* run(const Table& t, Bound& b) {
    Arg<TensorList> examples(t, 0, b);
    Arg<IntList> shifts(t, 1, b);
    const TensorList views = examples.get();
    const IntSpan behind = shifts.get();
    VESTA_CHECK(views.size() == behind.size(), value, "_enter_examples: expected a shift for each example.");
    std::vector<Example> made;
    for (size_t i = 0; i < behind.size(); ++i) made.push_back({views[i], behind[i] + shift_of_example(views[i])});
    enter_examples(std::move(made));
    Py_RETURN_NONE;
  }
};
struct LeaveExamples {
  static constexpr char name[] = "_leave_examples", params[] = "()", doc[] = "Ends the last _enter_examples().";
  static PyObject* run(const Table&, Bound&) {
    leave_examples();
    Py_RETURN_NONE;
  }
};

// ---- Ctrl-C ----

unsigned long main_thread = 0;

/// Ends a long loop or wait where a signal's handler raised: the library calls this between their pieces.
void look_at_signals() {
  if (PyThread_get_thread_ident() != main_thread || !Py_IsInitialized()) return;
  Gil gil;
  if (PyErr_CheckSignals() < 0) throw_current();
}

}  // namespace

bool add_settings(PyObject* module) {
  set_main_thread();
  main_thread = PyThread_get_thread_ident();
  pthread_atfork(nullptr, nullptr, [] { main_thread = PyThread_get_thread_ident(); });
  set_interrupt_check(look_at_signals);
  set_warning_handler(show_warning);
  set_waiting_hooks({begin_waiting, end_waiting});
  return add_functions<GetDefaultDtype, SetDefaultDtype, SetNumThreads, SetFlushDenormal, GetNumThreads,
                       SetLapackFolder, PromoteTypes, CanCast, ResultType, ProductSwitch, FollowTorch, FloatLimits,
                       IntLimits, EnterExamples, LeaveExamples>(module);
}

}  // namespace vesta::python
