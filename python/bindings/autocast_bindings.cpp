// The thread's autocast state: what vesta.autocast is made of, under PyTorch's names.
#include <vesta/core/dispatch/autocast.h>

#include "dtype_device.h"
#include "factories.h"
#include "hand.h"

namespace vesta::python {
namespace {

/// Reads argument i, the text of a device type that autocast exists for.
DeviceType device_type_of(const Table& t, int i, Bound& b) {
  Device d;
  if (!PyUnicode_Check(b.slot[i]) || !to_device(b.slot[i], d)) wrong_type(t, i, "str", b.slot[i]);
  VESTA_CHECK(d.type() == DeviceType::cpu || d.type() == DeviceType::cuda, runtime, t.op,
              ": expected device type 'cpu' or 'cuda', got '", name(d.type()), "' (device_type).");
  return d.type();
}

struct IsAutocastEnabled {
  static constexpr char name[] = "is_autocast_enabled",
                        doc[] = "Whether autocast is on in this thread for a device type, CUDA unless one is given.";
  static constexpr const char* forms[] = {"()", "(Text device_type)"};
  static PyObject* run(const Table& t, Bound& b) {
    const DeviceType d = b.slot[0] ? device_type_of(t, 0, b) : DeviceType::cuda;
    return PyBool_FromLong(autocast::mode(d).enabled);
  }
};
struct SetAutocastEnabled {
  static constexpr char name[] = "set_autocast_enabled",
                        doc[] = "Switches autocast in this thread for a device type; with a bool alone, for CUDA.";
  static constexpr const char* forms[] = {"(Text device_type, bool enabled)", "(bool enabled)"};
  static PyObject* run(const Table& t, Bound& b) {
    PyObject* flag = b.slot[1] ? b.slot[1] : b.slot[0];
    if (!PyBool_Check(flag)) wrong_type(t, b.slot[1] ? 1 : 0, "bool", flag);
    autocast::set_enabled(b.slot[1] ? device_type_of(t, 0, b) : DeviceType::cuda, flag == Py_True);
    Py_RETURN_NONE;
  }
};
struct GetAutocastDtype {
  static constexpr char name[] = "get_autocast_dtype", params[] = "(object device_type)",
                        doc[] = "The dtype that autocast lowers to on a device type.";
  static PyObject* run(const Table& t, Bound& b) { return wrap_dtype(autocast::mode(device_type_of(t, 0, b)).dtype); }
};
struct SetAutocastDtype {
  static constexpr char name[] = "set_autocast_dtype", params[] = "(object device_type, object dtype)",
                        doc[] = "Sets the dtype that autocast lowers to on a device type, in this thread.";
  static PyObject* run(const Table& t, Bound& b) {
    DType d;
    if (!to_dtype(b.slot[1], d)) wrong_type(t, 1, "vesta.dtype", b.slot[1]);
    autocast::set_dtype(device_type_of(t, 0, b), d);
    Py_RETURN_NONE;
  }
};
struct IsAutocastAvailable {
  static constexpr char name[] = "_is_autocast_available", params[] = "(object device_type)",
                        doc[] = "Whether there is autocast for a device type.";
  static PyObject* run(const Table& t, Bound& b) {
    Device d;
    if (!PyUnicode_Check(b.slot[0])) wrong_type(t, 0, "str", b.slot[0]);
    const std::string text = PyUnicode_AsUTF8(b.slot[0]);
    return PyBool_FromLong(text == "cpu" || text == "cuda");
  }
};
struct IsCacheEnabled {
  static constexpr char name[] = "is_autocast_cache_enabled", params[] = "()",
                        doc[] = "Whether casts of weights are kept.";
  static PyObject* run(const Table&, Bound&) { return PyBool_FromLong(autocast::cache_enabled()); }
};
struct SetCacheEnabled {
  static constexpr char name[] = "set_autocast_cache_enabled", params[] = "(bool enabled)",
                        doc[] = "Says whether casts of weights are kept.";
  static PyObject* run(const Table& t, Bound& b) {
    autocast::set_cache_enabled(Arg<bool>(t, 0, b).get());
    Py_RETURN_NONE;
  }
};
struct ClearCache {
  static constexpr char name[] = "clear_autocast_cache", params[] = "()", doc[] = "Forgets the kept casts of weights.";
  static PyObject* run(const Table&, Bound&) {
    autocast::clear_cache();
    Py_RETURN_NONE;
  }
};
struct IncrementNesting {
  static constexpr char name[] = "autocast_increment_nesting", params[] = "()",
                        doc[] = "Notes that this thread enters a context; the new depth.";
  static PyObject* run(const Table&, Bound&) { return PyLong_FromLong(autocast::increment_nesting()); }
};
struct DecrementNesting {
  static constexpr char name[] = "autocast_decrement_nesting", params[] = "()",
                        doc[] = "Notes that this thread leaves a context; the new depth.";
  static PyObject* run(const Table&, Bound&) { return PyLong_FromLong(autocast::decrement_nesting()); }
};
struct Counts {
  static constexpr char name[] = "_autocast_cache_counts", params[] = "()",
                        doc[] = "(hits, casts, entries) of this thread's cache, for tests.";
  static PyObject* run(const Table&, Bound&) {
    const autocast::CacheCounts c = autocast::cache_counts();
    return Py_BuildValue("(LLL)", static_cast<long long>(c.hits), static_cast<long long>(c.casts),
                         static_cast<long long>(c.entries));
  }
};

}  // namespace

bool add_autocast(PyObject* module) {
  return add_functions<IsAutocastEnabled, SetAutocastEnabled, GetAutocastDtype, SetAutocastDtype, IsAutocastAvailable,
                       IsCacheEnabled, SetCacheEnabled, ClearCache, IncrementNesting, DecrementNesting, Counts>(module);
}

}  // namespace vesta::python
