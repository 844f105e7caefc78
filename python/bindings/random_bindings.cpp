// vesta.Generator, and the default one that manual_seed() seeds.
#include <vesta/core/backend.h>
#include <vesta/core/random.h>

#include "arguments.h"
#include "dtype_device.h"
#include "factories.h"
#include "generator.h"
#include "hand.h"

namespace vesta::python {
namespace {

struct PyGenerator {
  PyObject_HEAD Generator* generator;
  bool owned;
};
PyTypeObject* generator_type;
PyObject* default_object;

Generator& self_of(PyObject* o) { return *reinterpret_cast<PyGenerator*>(o)->generator; }

/// Reads a seed: any integer of 64 bits, negative ones as their two's complement.
uint64_t seed_of(PyObject* o, const char* op) {
  Ref n(PyNumber_Index(o));
  if (!n) {
    PyErr_Clear();
    type_error("%s(): argument 'seed' (position 1) must be int, not %s", op, Py_TYPE(o)->tp_name);
  }
  int overflow;
  long long small = PyLong_AsLongLongAndOverflow(n.get(), &overflow);
  if (!overflow) return uint64_t(small);
  unsigned long long v = PyLong_AsUnsignedLongLong(n.get());
  if (PyErr_Occurred()) {
    PyErr_Clear();
    fail(Cause::value, op, ": expected a seed of 64 bits, got a larger integer (Overflow when unpacking long).");
  }
  return v;
}

/// Gives a device its number; raises unless there is such a device, of a kind that makes random numbers.
Device existing(Device d) {
  d = resolved(d);
  VESTA_CHECK(d.type() == DeviceType::cpu || d.type() == DeviceType::cuda, device,
              "Generator: expected cpu or a CUDA device, got ", d, " (device).");
  VESTA_CHECK(d.index() < backend(d.type()).device_count(), device, "Generator: expected one of ",
              backend(d.type()).device_count(), " devices, got ", d, " (device).");
  return d;
}

PyObject* generator_new(PyTypeObject* type, PyObject* args, PyObject* kwargs) {
  static const char* names[] = {"device", nullptr};
  PyObject* device = nullptr;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|O:Generator", const_cast<char**>(names), &device)) return nullptr;
  return guarded([&]() -> PyObject* {
    Device d;
    if (device && !to_device(device, d))
      type_error("Generator(): argument 'device' must be vesta.device, not %s", Py_TYPE(device)->tp_name);
    d = existing(d);
    auto* self = reinterpret_cast<PyGenerator*>(type->tp_alloc(type, 0));
    if (!self) return nullptr;
    self->generator = new Generator(Generator::kDefaultSeed, d), self->owned = true;
    return reinterpret_cast<PyObject*>(self);
  });
}
void generator_dealloc(PyObject* o) {
  auto* self = reinterpret_cast<PyGenerator*>(o);
  PyTypeObject* type = Py_TYPE(o);
  if (self->owned) delete self->generator;
  type->tp_free(o);
  Py_DECREF(type);
}
PyObject* generator_seed(PyObject* o, PyObject* seed) {
  return guarded([&] {
    self_of(o).manual_seed(seed_of(seed, "manual_seed"));
    return new_ref(o);
  });
}
PyObject* fresh_seed(PyObject* o, PyObject*) {
  return guarded([&] { return PyLong_FromUnsignedLongLong(self_of(o).seed()); });
}
PyObject* first_seed(PyObject* o, PyObject*) { return PyLong_FromUnsignedLongLong(self_of(o).initial_seed()); }
PyObject* get_state(PyObject* o, PyObject*) {
  return guarded([&] { return wrap(self_of(o).get_state()); });
}

void continue_from(Generator& g, PyObject* state, const char* op) {
  if (!is_tensor(state))
    type_error("%s(): argument 'new_state' (position 1) must be Tensor, not %s", op, Py_TYPE(state)->tp_name);
  g.set_state(unwrap(state));
}
PyObject* set_state(PyObject* o, PyObject* state) {
  return guarded([&] {
    continue_from(self_of(o), state, "set_state");
    return new_ref(o);
  });
}
PyObject* generator_device(PyObject* o, void*) { return wrap_device(self_of(o).device()); }

PyMethodDef generator_methods[] = {
    {"manual_seed", generator_seed, METH_O,
     "manual_seed($self, seed, /)\n--\n\nStarts again from a seed; returns itself."},
    {"seed", fresh_seed, METH_NOARGS, "seed($self, /)\n--\n\nTakes a seed from the system and returns it."},
    {"initial_seed", first_seed, METH_NOARGS, "initial_seed($self, /)\n--\n\nThe seed in use."},
    {"get_state", get_state, METH_NOARGS, "get_state($self, /)\n--\n\nThe state as a tensor of bytes."},
    {"set_state", set_state, METH_O, "set_state($self, new_state, /)\n--\n\nContinues from a state of get_state()."},
    {nullptr, nullptr, 0, nullptr}};
PyGetSetDef properties[] = {{"device", generator_device, nullptr, "Where it makes numbers.", nullptr},
                            {nullptr, nullptr, nullptr, nullptr, nullptr}};
PyType_Slot generator_slots[] = {
    {Py_tp_new, reinterpret_cast<void*>(generator_new)},
    {Py_tp_dealloc, reinterpret_cast<void*>(generator_dealloc)},
    {Py_tp_methods, generator_methods},
    {Py_tp_getset, properties},
    {Py_tp_doc,
     const_cast<char*>("Generator(device='cpu')\n--\n\nA source of random numbers with a state of its own.")},
    {0, nullptr}};

struct ManualSeed {
  static constexpr char name[] = "manual_seed", params[] = "(object seed)",
                        doc[] = "Seeds the default generator of every device: the same numbers follow, on any of them.";
  static PyObject* run(const Table&, Bound& b) {
    manual_seed(seed_of(b.slot[0], "manual_seed"));
    return new_ref(default_object);
  }
};
struct Seed {
  static constexpr char name[] = "seed", params[] = "()",
                        doc[] = "Seeds the default generator from the system; returns the seed.";
  static PyObject* run(const Table&, Bound&) { return PyLong_FromUnsignedLongLong(default_generator().seed()); }
};
struct InitialSeed {
  static constexpr char name[] = "initial_seed", params[] = "()", doc[] = "The default generator's seed.";
  static PyObject* run(const Table&, Bound&) { return PyLong_FromUnsignedLongLong(default_generator().initial_seed()); }
};
struct GetRngState {
  static constexpr char name[] = "get_rng_state", params[] = "()",
                        doc[] = "The default generator's state as a tensor of bytes.";
  static PyObject* run(const Table&, Bound&) { return wrap(default_generator().get_state()); }
};
struct SetRngState {
  static constexpr char name[] = "set_rng_state", params[] = "(object new_state)",
                        doc[] = "Lets the default generator continue from a state of get_rng_state().";
  static PyObject* run(const Table&, Bound& b) {
    continue_from(default_generator(), b.slot[0], "set_rng_state");
    Py_RETURN_NONE;
  }
};

/// Makes an object around a generator that lives as long as the process.
PyObject* wrap_default(Generator& g) {
  auto* self = PyObject_New(PyGenerator, generator_type);
  if (!self) return nullptr;
  self->generator = &g, self->owned = false;
  return reinterpret_cast<PyObject*>(self);
}
struct DefaultGenerator {
  static constexpr char name[] = "_default_generator", params[] = "(object device)",
                        doc[] = "The generator that ops on a device use where none is given.";
  static PyObject* run(const Table&, Bound& b) {
    Device d;
    if (!to_device(b.slot[0], d))
      type_error("_default_generator(): argument 'device' (position 1) must be vesta.device, not %s",
                 Py_TYPE(b.slot[0])->tp_name);
    return wrap_default(default_generator(existing(d)));
  }
};

}  // namespace

bool is_generator(PyObject* o) { return Py_TYPE(o) == generator_type; }
Generator* unwrap_generator(PyObject* o) { return &self_of(o); }

bool add_random(PyObject* module) {
  PyType_Spec spec = {"vesta.Generator", sizeof(PyGenerator), 0, Py_TPFLAGS_DEFAULT, generator_slots};
  generator_type = reinterpret_cast<PyTypeObject*>(PyType_FromSpec(&spec));
  if (!generator_type) return false;
  default_object = wrap_default(default_generator());
  if (!default_object) return false;
  return PyModule_AddObject(module, "Generator", new_ref(reinterpret_cast<PyObject*>(generator_type))) == 0 &&
         PyModule_AddObject(module, "default_generator", new_ref(default_object)) == 0 &&
         add_functions<ManualSeed, Seed, InitialSeed, GetRngState, SetRngState, DefaultGenerator>(module);
}

}  // namespace vesta::python
