// The recorder of core/dispatch/profiler.h for vesta.autograd.profiler, and the places of Python programs.
//
// Note [Places]
// A place is where the program was when it called an op: a node (code object, instruction) of a tree, with its caller's
// node where whole stacks are wanted. Line numbers and names are looked up at the end. Frames are read while this
// thread holds the GIL; an op on large tensors runs without it, and finds the place that was noted when the GIL was
// given away (`before_release`). Without whole stacks a place is the innermost frame outside of the package.
#include <atomic>
#include <map>
#include <string>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include <vesta/core/dispatch/profiler.h>
#include <vesta/core/ops/cost.h>

#include "factories.h"
#include "hand.h"

namespace vesta::python {
namespace {

using profiler::Event;
using profiler::Kind;
using profiler::Trace;

struct Place {
  int32_t caller;
  PyCodeObject* code;
  int at;  // the instruction; before Python 3.11 the line
};

/// The places of the sessions that run. Everything here is read and written under the GIL.
struct Places {
  std::vector<Place> all;
  std::map<std::tuple<int32_t, PyCodeObject*, int>, int32_t> numbers;
  std::unordered_map<PyCodeObject*, bool> is_program;  // else it belongs to the package
  std::string package;  // its folder
  int sessions = 0;
  bool stacks = false;

  void clear() {
    std::vector<PyObject*> codes;
    for (const auto& [code, program] : is_program) codes.push_back(reinterpret_cast<PyObject*>(code));
    is_program.clear(), numbers.clear(), all.clear();
    for (PyObject* code : codes) Py_DECREF(code);
  }
  bool program(PyCodeObject* code) {
    auto [found, is_new] = is_program.try_emplace(code, true);
    if (is_new) {
      Py_INCREF(code);
      const char* file = PyUnicode_AsUTF8(code->co_filename);
      if (!file) PyErr_Clear();
      else found->second = std::string_view(file).substr(0, package.size()) != package && file[0] != '<';
      // A notebook's cells and programs given as text are `<...>` too.
      if (file &&
          (std::string_view(file) == "<stdin>" || std::string_view(file) == "<string>" ||
           std::string_view(file).substr(0, 9) == "<doctest " || std::string_view(file).substr(0, 8) == "<ipython"))
        found->second = true;
    }
    return found->second;
  }
  int32_t number(int32_t caller, PyCodeObject* code, int at) {
    auto [found, is_new] = numbers.try_emplace({caller, code, at}, int32_t(all.size()));
    if (is_new) all.push_back({caller, code, at});
    return found->second;
  }
};
Places& places() {
  static auto* p = new Places;
  return *p;
}

int instruction_of(PyFrameObject* frame) {
#if PY_VERSION_HEX >= 0x030b0000
  return PyFrame_GetLasti(frame);
#else
  return PyFrame_GetLineNumber(frame);
#endif
}
int line_of(const Place& p) {
#if PY_VERSION_HEX >= 0x030b0000
  return PyCode_Addr2Line(p.code, p.at);
#else
  return p.at;
#endif
}

/// Returns the place of the calling thread, which holds the GIL. A Python error that is set stays as it is.
int32_t capture() {
  constexpr size_t kDeepest = 128;
  Places& p = places();
  PyFrameObject* frame = PyEval_GetFrame();
  Py_XINCREF(frame);
  std::pair<PyCodeObject*, int> stack[kDeepest];
  size_t depth = 0;
  while (frame && depth < kDeepest) {
    PyCodeObject* code = PyFrame_GetCode(frame);
    const bool program = p.program(code);  // keeps the code alive
    Py_DECREF(code);
    if (p.stacks || program) stack[depth++] = {code, instruction_of(frame)};
    PyFrameObject* back = program && !p.stacks ? nullptr : PyFrame_GetBack(frame);
    Py_DECREF(frame);
    frame = back;
  }
  Py_XDECREF(frame);
  int32_t place = -1;
  while (depth > 0) {
    --depth;
    place = p.number(place, stack[depth].first, stack[depth].second);
  }
  return place;
}

/// Counts how often the places were forgotten: a place that a thread noted before that is another one now.
constinit std::atomic<uint32_t> forgotten{0};
/// The place at which the thread gave the GIL away.
constinit thread_local int32_t noted = -1;
constinit thread_local uint32_t noted_in = 0;

void note_place() {
  noted = capture();
  noted_in = forgotten.load(std::memory_order_relaxed);
}
int32_t place_now() {
  if (PyGILState_Check()) return capture();
  return noted_in == forgotten.load(std::memory_order_relaxed) ? noted : -1;
}

PyObject* shape_list(IntSpan sizes) {
  Ref list(PyList_New(Py_ssize_t(sizes.size())));
  if (!list) return nullptr;
  for (size_t i = 0; i < sizes.size(); ++i) PyList_SET_ITEM(list.get(), Py_ssize_t(i), PyLong_FromLongLong(sizes[i]));
  return list.release();
}

/// The parameters of ops, read once.
class Parameters {
 public:
  const std::vector<Parameter>& of(const Schema& s) {
    auto [found, is_new] = known_.try_emplace(&s);
    if (is_new) found->second = parameters_of(s.parameters);
    return found->second;
  }

 private:
  std::unordered_map<const Schema*, std::vector<Parameter>> known_;
};

/// Returns PyTorch's input_shapes: a list per parameter, empty for what is no tensor, a list of lists for tensor lists.
PyObject* input_shapes(const Trace& trace, const Event& e, Parameters& known) {
  const auto operands = trace.operands_of(e);
  size_t count = operands.size();
  const std::vector<Parameter>* parameters = e.kind == Kind::op ? &known.of(*e.schema) : nullptr;
  if (parameters) count = parameters->size();
  Ref list(PyList_New(0));
  for (size_t i = 0; list && i < count; ++i) {
    const bool many = parameters && (*parameters)[i].type.find("TensorList") != std::string_view::npos;
    Ref one(many ? PyList_New(0) : nullptr);
    for (const profiler::Shape& s : operands) {
      if (size_t(s.parameter) != i) continue;
      Ref shape(shape_list(trace.sizes_of(s)));
      if (!shape) return nullptr;
      if (!many) one = std::move(shape);
      else if (PyList_Append(one.get(), shape.get()) < 0) return nullptr;
    }
    if (!one) one = Ref(PyList_New(0));
    if (!one || PyList_Append(list.get(), one.get()) < 0) return nullptr;
  }
  return list.release();
}

PyObject* event_tuple(const Event& e, const profiler::EventCost& cost, PyObject* name, PyObject* shapes) {
  const Py_ssize_t parent = e.parent == Event::kNone ? -1 : Py_ssize_t(e.parent);
  return Py_BuildValue(
      "(iOLLLniIKKNddNi)", int(e.kind), name, static_cast<long long>(e.start), static_cast<long long>(e.end),
      static_cast<long long>(e.memory), parent, int(e.place), e.tag, static_cast<unsigned long long>(e.first_node),
      static_cast<unsigned long long>(e.last_node), shapes, cost.bytes, cost.operations, PyBool_FromLong(cost.product),
      int(e.open) | int(e.failed) << 1 | (cost.dtype == DType::float64 ? 4 : 0) | int(e.on_device) << 3);
}

/// Returns what happened to memory: [(time, bytes, block, event or -1, existed), ...].
PyObject* memory_list(const Trace& trace) {
  Ref list(PyList_New(Py_ssize_t(trace.memory.size())));
  for (size_t i = 0; list && i < trace.memory.size(); ++i) {
    const profiler::MemoryEvent& m = trace.memory[i];
    PyObject* one =
        Py_BuildValue("(LLInN)", static_cast<long long>(m.time), static_cast<long long>(m.bytes), m.block,
                      m.event == Event::kNone ? Py_ssize_t(-1) : Py_ssize_t(m.event), PyBool_FromLong(m.existed));
    if (!one) return nullptr;
    PyList_SET_ITEM(list.get(), Py_ssize_t(i), one);
  }
  return list.release();
}

/// Returns the blocks of operands and results: [(event, parameter or -1 for a result, block), ...].
PyObject* block_list(const Trace& trace) {
  Ref list(PyList_New(0));
  const auto add = [&](size_t event, const profiler::Shape& s, int parameter) {
    if (s.block == 0) return true;
    Ref one(Py_BuildValue("(niI)", Py_ssize_t(event), parameter, s.block));
    return one && PyList_Append(list.get(), one.get()) == 0;
  };
  if (!list) return nullptr;
  for (size_t i = 0; i < trace.events.size(); ++i) {
    for (const profiler::Shape& s : trace.operands_of(trace.events[i]))
      if (!add(i, s, s.parameter)) return nullptr;
    for (const profiler::Shape& s : trace.results_of(trace.events[i]))
      if (!add(i, s, -1)) return nullptr;
  }
  return list.release();
}

/// Converts traces: [(thread, [event, ...], memory, blocks), ...]; see vesta/autograd/recording.py for the fields.
PyObject* to_python(const std::vector<Trace>& traces, bool shapes) {
  Ref result(PyList_New(0));
  Parameters known;
  for (const Trace& trace : traces) {
    const std::vector<profiler::EventCost> costs = profiler::costs(trace);
    std::unordered_map<std::string, Ref> names;
    Ref events(PyList_New(Py_ssize_t(trace.events.size())));
    if (!events) return nullptr;
    for (size_t i = 0; i < trace.events.size(); ++i) {
      const Event& e = trace.events[i];
      std::string text = e.kind == Kind::op ? "aten::" + trace.name_of(e) : trace.name_of(e);
      Ref& name = names[text];
      if (!name) name = Ref(PyUnicode_DecodeUTF8(text.data(), Py_ssize_t(text.size()), "replace"));
      if (!name) return nullptr;
      PyObject* sizes = shapes ? input_shapes(trace, e, known) : new_ref(Py_None);
      PyObject* tuple = sizes ? event_tuple(e, costs[i], name.get(), sizes) : nullptr;
      if (!tuple) return nullptr;
      PyList_SET_ITEM(events.get(), Py_ssize_t(i), tuple);
    }
    Ref memory(memory_list(trace)), blocks(block_list(trace));
    if (!memory || !blocks) return nullptr;
    Ref one(Py_BuildValue("(LNNN)", static_cast<long long>(trace.thread), events.release(), memory.release(),
                          blocks.release()));
    if (!one || PyList_Append(result.get(), one.get()) < 0) return nullptr;
  }
  return result.release();
}

struct ProfilerStart {
  static constexpr char name[] = "_profiler_start", params[] = "(bool stacks, Text package, bool memory)",
                        doc[] = "Begins a session of the recorder; returns its number.";
  static PyObject* run(const Table& t, Bound& b) {
    Places& p = places();
    const bool stacks = Arg<bool>(t, 0, b).get();
    p.package = std::string(Arg<Text>(t, 1, b).get());
    if (p.sessions++ == 0) {
      p.clear();
      forgotten.fetch_add(1, std::memory_order_relaxed);
      p.stacks = false;
    }
    p.stacks = p.stacks || stacks;
    profiler::port.place = &place_now;
    before_release = &note_place;
    return PyLong_FromUnsignedLongLong(profiler::start(Arg<bool>(t, 2, b).get()));
  }
};
struct ProfilerStop {
  static constexpr char name[] = "_profiler_stop", params[] = "(int64_t session, bool shapes, bool goes_on)",
                        doc[] = "What all threads did in a session, which then ends unless it shall go on.";
  static PyObject* run(const Table& t, Bound& b) {
    const auto session = uint64_t(Arg<int64_t>(t, 0, b).get());
    const bool shapes = Arg<bool>(t, 1, b).get(), goes_on = Arg<bool>(t, 2, b).get();
    if (goes_on) return to_python(profiler::snapshot(session), shapes);
    const std::vector<Trace> traces = profiler::stop(session);
    if (--places().sessions == 0) before_release = nullptr;
    return to_python(traces, shapes);
  }
};
struct ProfilerPlaces {
  static constexpr char name[] = "_profiler_places", params[] = "()",
                        doc[] = "The places of events: (caller or -1, file, line, function, belongs to the program).";
  static PyObject* run(const Table&, Bound&) {
    Places& p = places();
    Ref list(PyList_New(Py_ssize_t(p.all.size())));
    for (size_t i = 0; list && i < p.all.size(); ++i) {
      const Place& place = p.all[i];
      PyObject* one = Py_BuildValue("(iOiOi)", int(place.caller), place.code->co_filename, line_of(place),
                                    place.code->co_name, int(p.is_program[place.code]));
      if (!one) return nullptr;
      PyList_SET_ITEM(list.get(), Py_ssize_t(i), one);
    }
    return list.release();
  }
};
struct ProfilerOpen {
  static constexpr char name[] = "_profiler_open", params[] = "(int64_t kind, Text name, int64_t tag)",
                        doc[] = "Opens an event that is no op; returns its token, 0 where nothing is recorded.";
  static PyObject* run(const Table& t, Bound& b) {
    if (!profiler::running()) return PyLong_FromLong(0);
    const auto kind = Kind(Arg<int64_t>(t, 0, b).get());
    return PyLong_FromUnsignedLongLong(
        profiler::open(kind, Arg<Text>(t, 1, b).get(), uint32_t(Arg<int64_t>(t, 2, b).get())));
  }
};
struct ProfilerClose {
  static constexpr char name[] = "_profiler_close", params[] = "(object token)", doc[] = "Closes an event.";
  static PyObject* run(const Table&, Bound& b) {
    const unsigned long long token = PyLong_AsUnsignedLongLong(b.slot[0]);
    if (token == ~0ull && PyErr_Occurred()) return nullptr;
    profiler::close(token);
    Py_RETURN_NONE;
  }
};
struct ProfilerBlock {
  static constexpr char name[] = "_profiler_block", params[] = "(Tensor input)",
                        doc[] = "The number of the block of memory that a tensor holds; 0: no profile watches it.";
  static PyObject* run(const Table& t, Bound& b) {
    return PyLong_FromUnsignedLong(profiler::block_of(Arg<Tensor>(t, 0, b).get()));
  }
};
struct ProfilerPeaks {
  static constexpr char name[] = "_profiler_peaks", params[] = "()",
                        doc[] =
                            "What the machine can do: bytes per second of memory and caches, operations per second.";
  static PyObject* run(const Table&, Bound&) {
    profiler::Peaks p;
    {
      const WithoutGil open;
      p = profiler::peaks();
    }
    return Py_BuildValue("(ddd)", p.bytes_per_second, p.cached_bytes_per_second, p.operations_per_second);
  }
};

}  // namespace

bool add_profiler(PyObject* module) {
  return add_functions<ProfilerStart, ProfilerStop, ProfilerPlaces, ProfilerOpen, ProfilerClose, ProfilerBlock,
                       ProfilerPeaks>(module);
}

}  // namespace vesta::python
