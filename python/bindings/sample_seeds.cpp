// vesta._C._SampleSeeds: the random states that one sample of a dataset starts from, in a quarter of a microsecond.
//
// random.seed() and numpy.random.seed() cost 5 us each, more than many a sample. Both generators are Mersenne Twisters
// whose 624 words may be anything but zeros, so the words are written where they lie. Where they lie is found, and
// checked against getstate(), in vesta/utils/data/seeding.py; without such a place the words go through setstate().
#include <cstring>

#include <vesta/core/random.h>
#include <vesta/nn/data/sample_seed.h>

#include "arguments.h"
#include "factories.h"

namespace vesta::python {
namespace {

constexpr int kWords = 624;  // of a Mersenne Twister; position 624 says that all of them are used up

using data::SampleStream;

/// Makes four streams of 32-bit words side by side: xoshiro128+ (Blackman, Vigna, "Scrambled linear pseudorandom number
/// generators", TOMS 2021), each from a state of its own.
struct Lanes {
  using Words = uint32_t __attribute__((vector_size(16)));
  Words s[4];

  explicit Lanes(uint64_t seed) {
    uint64_t state[8];
    for (int i = 0; i < 8; ++i) state[i] = data::mixed(seed + data::kGolden * uint64_t(i + 1));
    std::memcpy(s, state, sizeof s);
  }
  Words next() {
    const Words result = s[0] + s[3], t = s[1] << 9;
    s[2] ^= s[0], s[3] ^= s[1], s[1] ^= s[2], s[0] ^= s[3], s[2] ^= t;
    s[3] = s[3] << 11 | s[3] >> 21;
    return result;
  }
};

/// Fills the words of a Mersenne Twister, from two groups of streams: one alone would wait for itself.
void fill(uint32_t* words, uint64_t seed) {
  Lanes even(seed), odd(~seed);
  for (int i = 0; i < kWords; i += 8) {
    const Lanes::Words pair[2] = {even.next(), odd.next()};
    std::memcpy(words + i, pair, sizeof pair);
  }
}

/// Holds somebody's memory writable, or nothing.
struct Memory {
  Py_buffer view = {};
  void release() {
    if (view.obj) PyBuffer_Release(&view);
  }
  /// Takes the memory of `o`, of at least `bytes`; None is nothing. False: a Python error is set.
  bool take(PyObject* o, Py_ssize_t bytes) {
    release();
    view = {};
    if (o == Py_None) return true;
    if (PyObject_GetBuffer(o, &view, PyBUF_WRITABLE) < 0) return false;
    if (view.len >= bytes) return true;
    PyErr_Format(PyExc_ValueError, "_SampleSeeds: expected %zd bytes, got %zd.", bytes, view.len);
    return false;
  }
  template <class T>
  T* as() const {
    return static_cast<T*>(view.buf);
  }
  explicit operator bool() const { return view.obj; }
};

struct Seeds {
  PyObject_HEAD PyObject* twister;  // the instance behind the functions of module `random`; or null
  PyObject* slow;  // called with the position where something cannot be seeded here; or null
  Memory words;  // its position, then its words
  Memory numpy;  // words, then the position, of NumPy's legacy generator
  Memory normal;  // whether NumPy keeps a second normal number, and which
  Memory place;  // where the position of the sample at hand is written
  uint64_t base, position;  // of the pass; of the sample that was seeded last
  uint32_t first;  // word 0 as it was written last
  bool known;  // nobody else has changed the states since
};
PyTypeObject* type;
PyObject* gauss_next;

Seeds& seeds_of(PyObject* o) { return *reinterpret_cast<Seeds*>(o); }

PyObject* seeds_new(PyTypeObject* t, PyObject*, PyObject*) { return t->tp_alloc(t, 0); }

int seeds_init(PyObject* o, PyObject* args, PyObject* kwargs) {
  static const char* names[] = {"twister", "words", "numpy", "normal", "place", "slow", nullptr};
  PyObject *twister = Py_None, *words = Py_None, *numpy = Py_None, *normal = Py_None, *place = Py_None, *slow = Py_None;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|OOOOOO:_SampleSeeds", const_cast<char**>(names), &twister, &words,
                                   &numpy, &normal, &place, &slow))
    return -1;
  Seeds& s = seeds_of(o);
  const bool taken = s.words.take(words, 4 * (kWords + 1)) && s.numpy.take(numpy, 4 * (kWords + 1)) &&
                     s.normal.take(normal, 16) && s.place.take(place, 8);
  if (!taken) return -1;
  Py_XSETREF(s.twister, twister == Py_None ? nullptr : new_ref(twister));
  Py_XSETREF(s.slow, slow == Py_None ? nullptr : new_ref(slow));
  s.known = false;
  return 0;
}
void seeds_dealloc(PyObject* o) {
  PyTypeObject* t = Py_TYPE(o);
  Seeds& s = seeds_of(o);
  for (Memory* m : {&s.words, &s.numpy, &s.normal, &s.place}) m->release();
  Py_XDECREF(s.twister);
  Py_XDECREF(s.slow);
  t->tp_free(o);
  Py_DECREF(t);
}

bool to_uint64(PyObject* o, uint64_t& value) {
  value = PyLong_AsUnsignedLongLongMask(o);
  return value != uint64_t(-1) || !PyErr_Occurred();
}

PyObject* begin(PyObject* o, PyObject* base) {
  Seeds& s = seeds_of(o);
  s.known = false;
  if (!to_uint64(base, s.base)) return nullptr;
  Py_RETURN_NONE;
}

bool seed_python(Seeds& s, uint64_t position) {
  auto* w = s.words.as<uint32_t>();
  const bool untouched = s.known && w[0] == kWords && w[1] == s.first;
  w[0] = kWords;
  fill(w + 1, data::sample_seed(s.base, position, SampleStream::python));
  s.first = w[1];
  return untouched || PyObject_SetAttr(s.twister, gauss_next, Py_None) == 0;
}
void seed_numpy(Seeds& s, uint64_t position) {
  auto* w = s.numpy.as<uint32_t>();
  fill(w, data::sample_seed(s.base, position, SampleStream::numpy));
  w[kWords] = kWords;
  std::memset(s.normal.view.buf, 0, 16);
}

/// Seeds for the sample at a position.
PyObject* seed(PyObject* o, PyObject* number) {
  Seeds& s = seeds_of(o);
  uint64_t position;
  if (!to_uint64(number, position)) return nullptr;
  if (s.place) *s.place.as<uint64_t>() = position;
  default_generator().manual_seed(data::sample_seed(s.base, position, SampleStream::vesta));
  if (s.words && !seed_python(s, position)) return nullptr;
  if (s.numpy) seed_numpy(s, position);
  s.known = true;
  s.position = position;
  return s.slow ? PyObject_CallOneArg(s.slow, number) : new_ref(Py_None);
}

/// Seeds NumPy alone, for the sample at hand: it has just been imported.
PyObject* seed_late(PyObject* o, PyObject*) {
  Seeds& s = seeds_of(o);
  if (s.numpy) seed_numpy(s, s.position);
  Py_RETURN_NONE;
}

/// Returns the words that a stream starts with at a position, as bytes.
PyObject* words_at(PyObject* o, PyObject* args) {
  unsigned long long position;
  int which;
  if (!PyArg_ParseTuple(args, "Ki:words_at", &position, &which)) return nullptr;
  PyObject* bytes = PyBytes_FromStringAndSize(nullptr, 4 * kWords);
  if (bytes) {
    uint32_t words[kWords];
    fill(words, data::sample_seed(seeds_of(o).base, position, SampleStream(which)));
    std::memcpy(PyBytes_AS_STRING(bytes), words, sizeof words);
  }
  return bytes;
}

constexpr Py_ssize_t kTwister = 4 * (kWords + 1), kAll = 2 * kTwister + 16;  // bytes saved without NumPy, with it

/// Returns (states as bytes, our generator's state, Python's second normal number).
PyObject* save(PyObject* o, PyObject*) {
  return guarded([&]() -> PyObject* {
    Seeds& s = seeds_of(o);
    Ref bytes(PyBytes_FromStringAndSize(nullptr, s.numpy ? kAll : kTwister));
    Ref second(s.words ? PyObject_GetAttr(s.twister, gauss_next) : new_ref(Py_None));
    if (!bytes || !second) return nullptr;
    char* to = PyBytes_AS_STRING(bytes.get());
    std::memset(to, 0, size_t(PyBytes_GET_SIZE(bytes.get())));
    if (s.words) std::memcpy(to, s.words.view.buf, kTwister);
    if (s.numpy) {
      std::memcpy(to + kTwister, s.numpy.view.buf, kTwister);
      std::memcpy(to + 2 * kTwister, s.normal.view.buf, 16);
    }
    s.known = false;
    return PyTuple_Pack(3, bytes.get(), Ref(wrap(default_generator().get_state())).get(), second.get());
  });
}

PyObject* restore(PyObject* o, PyObject* saved) {
  return guarded([&]() -> PyObject* {
    Seeds& s = seeds_of(o);
    PyObject *bytes, *state, *second;
    if (!PyArg_ParseTuple(saved, "SOO:restore", &bytes, &state, &second)) return nullptr;
    const Py_ssize_t size = PyBytes_GET_SIZE(bytes);
    if ((size != kAll && size != kTwister) || !is_tensor(state)) {
      PyErr_SetString(PyExc_ValueError, "restore: expected what save() returned.");
      return nullptr;
    }
    const char* from = PyBytes_AS_STRING(bytes);
    default_generator().set_state(unwrap(state));
    if (s.words) {
      std::memcpy(s.words.view.buf, from, kTwister);
      if (PyObject_SetAttr(s.twister, gauss_next, second) < 0) return nullptr;
    }
    if (s.numpy && size == kAll) {  // NumPy imported meanwhile: there is nothing to put back
      std::memcpy(s.numpy.view.buf, from + kTwister, kTwister);
      std::memcpy(s.normal.view.buf, from + 2 * kTwister, 16);
    }
    s.known = false;
    Py_RETURN_NONE;
  });
}

PyMethodDef seeds_methods[] = {
    {"begin", begin, METH_O, "begin($self, base, /)\n--\n\nTakes the number that all seeds of a pass depend on."},
    {"seed", seed, METH_O, "seed($self, position, /)\n--\n\nSeeds for the sample at a position."},
    {"seed_late", seed_late, METH_NOARGS,
     "seed_late($self, /)\n--\n\nSeeds NumPy, just imported, for the same sample."},
    {"words_at", words_at, METH_VARARGS, "words_at($self, position, which, /)\n--\n\nA stream's words as bytes."},
    {"save", save, METH_NOARGS, "save($self, /)\n--\n\nThe states as they are."},
    {"restore", restore, METH_O, "restore($self, saved, /)\n--\n\nPuts back what save() returned."},
    {nullptr, nullptr, 0, nullptr}};
PyType_Slot seeds_slots[] = {{Py_tp_new, reinterpret_cast<void*>(seeds_new)},
                             {Py_tp_init, reinterpret_cast<void*>(seeds_init)},
                             {Py_tp_dealloc, reinterpret_cast<void*>(seeds_dealloc)},
                             {Py_tp_methods, seeds_methods},
                             {Py_tp_doc, const_cast<char*>("Random states of samples.")},
                             {0, nullptr}};

}  // namespace

bool add_sample_seeds(PyObject* module) {
  PyType_Spec spec = {"vesta._C._SampleSeeds", sizeof(Seeds), 0, Py_TPFLAGS_DEFAULT, seeds_slots};
  type = reinterpret_cast<PyTypeObject*>(PyType_FromSpec(&spec));
  gauss_next = PyUnicode_InternFromString("gauss_next");
  return type && gauss_next &&
         PyModule_AddObject(module, "_SampleSeeds", new_ref(reinterpret_cast<PyObject*>(type))) == 0;
}

}  // namespace vesta::python
