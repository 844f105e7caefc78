// A cuDNN for the emulated device: the functions that cuda/lib/cudnn_graph.cpp calls, with their published meanings,
// for graphs of one convolution, of a forward convolution with pointwise operations, and of products, reductions and
// pointwise operations (attention). It computes by plain loops in double, over any strides of the tensors. Becomes
// build/fakes/cudnn/libcudnn.so.9. FAKE_CUDNN=convolutions proposes nothing for graphs that are more than a
// convolution; FAKE_CUDNN=undetermined proposes an engine first whose note says that it is not deterministic.
#include <dlfcn.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <map>
#include <memory>
#include <vector>

#include <vesta/core/base/half.h>
#include <vesta/cuda/lib/cudnn_abi.h>

namespace {
namespace dnn = vesta::cuda::cudnn;

/// A descriptor: the bytes of its attributes, and the descriptors that it refers to.
struct Descriptor {
  int kind = 0;
  std::map<int, std::vector<uint8_t>> values;
  std::map<int, std::vector<std::shared_ptr<Descriptor>>> others;

  template <class T>
  std::vector<T> get(int attribute) const {
    const auto at = values.find(attribute);
    if (at == values.end()) return {};
    std::vector<T> to(at->second.size() / sizeof(T));
    std::memcpy(to.data(), at->second.data(), to.size() * sizeof(T));
    return to;
  }
  const Descriptor& other(int attribute) const { return *others.at(attribute).at(0); }
};
using Shared = std::shared_ptr<Descriptor>;
Shared& shared(void* raw) { return *static_cast<Shared*>(raw); }

size_t bytes_of(int type) {
  switch (type) {
    case dnn::type_int64:
    case dnn::type_double:
    case dnn::type_void_ptr:
    case dnn::type_handle: return 8;
    case dnn::type_boolean:
    case dnn::type_char: return 1;
    default: return 4;
  }
}

uint64_t convolutions = 0, joined = 0, programs = 0, undetermined = 0;
void* stream_of_handle = nullptr;

/// Numbers of a tensor's dimensions; of those with four, the last is 1 for sizes and 0 for places and strides.
using Index = std::array<int64_t, 5>;

Index index_of(const std::vector<int64_t>& numbers, int64_t missing) {
  Index to{0, 0, 0, 0, missing};
  std::copy(numbers.begin(), numbers.end(), to.begin());
  return to;
}

/// One operand: sizes and strides in its own order [a, b, (depth,) height, width].
struct Operand {
  int type = 0;
  Index sizes{}, strides{};
  char* data = nullptr;

  Operand(const Descriptor& t, const std::map<int64_t, void*>& pointers) {
    type = t.get<int>(dnn::tensor_data_type).at(0);
    sizes = index_of(t.get<int64_t>(dnn::tensor_dimensions), 1);
    strides = index_of(t.get<int64_t>(dnn::tensor_strides), 0);
    data = static_cast<char*>(pointers.at(t.get<int64_t>(dnn::tensor_id).at(0)));
  }
  int64_t at(const Index& i) const {
    return i[0] * strides[0] + i[1] * strides[1] + i[2] * strides[2] + i[3] * strides[3] + i[4] * strides[4];
  }
  int64_t numel() const { return sizes[0] * sizes[1] * sizes[2] * sizes[3] * sizes[4]; }
};

template <class F>
void with_type(int type, F f) {
  switch (type) {
    case dnn::data_float: return f.template operator()<float>();
    case dnn::data_double: return f.template operator()<double>();
    case dnn::data_half: return f.template operator()<vesta::Half>();
    default: return f.template operator()<vesta::BFloat16>();
  }
}

template <class T>
double wide(T v) {
  if constexpr (sizeof(T) == 2) return static_cast<float>(v);
  else return v;
}

std::vector<double> read(const Operand& o) {
  std::vector<double> to(size_t(o.numel()));  // dense in memory, so strides address it
  with_type(o.type, [&]<class T>() {
    for (size_t i = 0; i < to.size(); ++i) to[i] = wide(reinterpret_cast<const T*>(o.data)[i]);
  });
  return to;
}
void write(const Operand& o, const std::vector<double>& from) {
  with_type(o.type, [&]<class T>() {
    for (size_t i = 0; i < from.size(); ++i) {
      if constexpr (sizeof(T) == 2) reinterpret_cast<T*>(o.data)[i] = T(float(from[i]));
      else reinterpret_cast<T*>(o.data)[i] = T(from[i]);
    }
  });
}

/// Calls f(index) for every index below the sizes.
template <class F>
void for_each(const Index& sizes, F f) {
  for (int64_t i = 0; i < sizes[0]; ++i)
    for (int64_t j = 0; j < sizes[1]; ++j)
      for (int64_t k = 0; k < sizes[2]; ++k)
        for (int64_t l = 0; l < sizes[3]; ++l)
          for (int64_t m = 0; m < sizes[4]; ++m) f(Index{i, j, k, l, m});
}

/// The windows of a convolution.
struct Windows {
  std::vector<int64_t> padding, stride, dilation;

  explicit Windows(const Descriptor& c)
      : padding(c.get<int64_t>(dnn::convolution_pre_paddings)),
        stride(c.get<int64_t>(dnn::convolution_strides)),
        dilation(c.get<int64_t>(dnn::convolution_dilations)) {}
  /// Calls f(index in x, in w) for every factor of y's element i.
  template <class F>
  void for_factors(const Index& i, const Index& x, const Index& w, F f) const {
    const int64_t depth = w[1], per_group = w[0] / (x[1] / depth);
    for_each({1, depth, w[2], w[3], w[4]}, [&](Index k) {
      Index at{i[0], i[1] / per_group * depth + k[1], 0, 0, 0};
      for (size_t d = 0; d < padding.size(); ++d) {
        at[d + 2] = i[d + 2] * stride[d] - padding[d] + k[d + 2] * dilation[d];
        if (at[d + 2] < 0 || at[d + 2] >= x[d + 2]) return;
      }
      k[0] = i[1];
      f(at, k);
    });
  }
};

/// One queued convolution.
struct Work {
  int kind;
  Operand x, w, y;
  Windows windows;
};

/// Calls f(place in x, in w, in y) for every product of a convolution.
template <class F>
void for_products(const Work& k, F f) {
  for_each(k.y.sizes, [&](const Index& i) {
    k.windows.for_factors(i, k.x.sizes, k.w.sizes, [&](const Index& a, const Index& b) {
      f(size_t(k.x.at(a)), size_t(k.w.at(b)), size_t(k.y.at(i)));
    });
  });
}

void run(void* argument) {
  const std::unique_ptr<Work> k(static_cast<Work*>(argument));
  const auto operand = [&](const Operand& o, int written_by) {
    return k->kind == written_by ? std::vector<double>(size_t(o.numel())) : read(o);
  };
  std::vector<double> x = operand(k->x, dnn::operation_input_gradient);
  std::vector<double> w = operand(k->w, dnn::operation_weight_gradient), y = operand(k->y, dnn::operation_forward);
  if (k->kind == dnn::operation_forward) {
    for_products(*k, [&](size_t a, size_t b, size_t c) { y[c] += x[a] * w[b]; });
    write(k->y, y);
  } else if (k->kind == dnn::operation_input_gradient) {
    for_products(*k, [&](size_t a, size_t b, size_t c) { x[a] += y[c] * w[b]; });
    write(k->x, x);
  } else {
    for_products(*k, [&](size_t a, size_t b, size_t c) { w[b] += x[a] * y[c]; });
    write(k->w, w);
  }
}

void enqueue(void* stream, void (*run_it)(void*), void* work) {
  using Enqueue = void (*)(void*, const char*, void (*)(void*), void*);
  void* library = dlopen(std::getenv("VESTA_CUDA_LIBRARY"), RTLD_NOW | RTLD_NOLOAD);
  reinterpret_cast<Enqueue>(dlsym(library, "vesta_emulation_enqueue"))(stream, "fake_cudnn", run_it, work);
  dlclose(library);
}

/// The values of a tensor, by rows.
struct Value {
  Index sizes{};
  std::vector<double> data;
  Value() = default;
  explicit Value(const Index& n, double all = 0) : sizes(n), data(size_t(n[0] * n[1] * n[2] * n[3] * n[4]), all) {}
  double& operator[](const Index& i) {
    return data[size_t((((i[0] * sizes[1] + i[1]) * sizes[2] + i[2]) * sizes[3] + i[3]) * sizes[4] + i[4])];
  }
  /// Returns the element for an index of a tensor of other sizes: elements serve as many as these sizes are larger.
  double& spread(Index i, const Index& of) {
    for (size_t d = 0; d < i.size(); ++d) i[d] = i[d] * sizes[d] / of[d];
    return (*this)[i];
  }
};

/// A queued graph of operations, run one after the other.
struct Program {
  Shared graph;
  std::map<int64_t, void*> pointers;
  std::map<int64_t, float> numbers;  // given by the host: read when the graph is queued
  std::map<int64_t, Value> values;

  static Index sizes_of(const Descriptor& t) { return index_of(t.get<int64_t>(dnn::tensor_dimensions), 1); }
  static int64_t id_of(const Descriptor& t) { return t.get<int64_t>(dnn::tensor_id).at(0); }

  Value& get(const Descriptor& t) {
    const int64_t id = id_of(t);
    if (const auto at = values.find(id); at != values.end()) return at->second;
    Value& v = values[id] = Value(sizes_of(t));
    if (const auto n = numbers.find(id); n != numbers.end()) {
      v.data.at(0) = n->second;
      return v;
    }
    const Operand memory(t, pointers);
    with_type(memory.type, [&]<class T>() {
      for_each(v.sizes, [&](const Index& i) { v[i] = wide(reinterpret_cast<const T*>(memory.data)[memory.at(i)]); });
    });
    return v;
  }
  void put(const Descriptor& t, Value v) {
    const int type = t.get<int>(dnn::tensor_data_type).at(0);
    if (type != dnn::data_int32 && type != dnn::data_boolean) {
      with_type(type, [&]<class T>() {
        for (double& x : v.data) x = wide(T(float(x)));
      });
    }
    if (!t.values.count(dnn::tensor_is_virtual)) {
      const Operand memory(t, pointers);
      with_type(memory.type, [&]<class T>() {
        for_each(v.sizes, [&](const Index& i) { reinterpret_cast<T*>(memory.data)[memory.at(i)] = T(float(v[i])); });
      });
    }
    values[id_of(t)] = std::move(v);
  }

  void pointwise(const Descriptor& op) {
    const Descriptor &what = op.other(dnn::operation_pointwise_what), &y = op.other(dnn::operation_pointwise_y);
    Value r(sizes_of(y)), x = get(op.other(dnn::operation_pointwise_x)), b(r.sizes), t(r.sizes);
    if (op.others.count(dnn::operation_pointwise_b)) b = get(op.other(dnn::operation_pointwise_b));
    if (op.others.count(dnn::operation_pointwise_t)) t = get(op.other(dnn::operation_pointwise_t));
    const int mode = what.get<int>(dnn::pointwise_mode).at(0);
    const auto axis = what.get<int64_t>(dnn::pointwise_axis);
    for_each(r.sizes, [&](const Index& i) {
      const double p = x.spread(i, r.sizes), q = b.spread(i, r.sizes);
      switch (mode) {
        case dnn::pointwise_add: r[i] = p + q; break;
        case dnn::pointwise_multiply: r[i] = p * q; break;
        case dnn::pointwise_divide: r[i] = p / q; break;
        case dnn::pointwise_subtract: r[i] = p - q; break;
        case dnn::pointwise_exp: r[i] = std::exp(p); break;
        case dnn::pointwise_log: r[i] = std::log(p); break;
        case dnn::pointwise_at_least: r[i] = p >= q; break;
        case dnn::pointwise_relu:
          r[i] = what.get<int>(dnn::pointwise_nan).at(0) != 0 && std::isnan(p) ? p : std::fmax(p, 0);
          break;
        case dnn::pointwise_index: r[i] = double(i[size_t(axis.at(0))]); break;
        case dnn::pointwise_select: r[i] = t.spread(i, r.sizes) != 0 ? p : q; break;
        default: std::abort();
      }
    });
    put(y, std::move(r));
  }
  /// The forward direction.
  void convolution(const Descriptor& op) {
    const Descriptor &c = op.other(dnn::forward_convolution), &y = op.other(dnn::forward_y);
    Value r(sizes_of(y)), x = get(op.other(dnn::forward_x)), w = get(op.other(dnn::forward_w));
    const Windows windows(c);
    for_each(r.sizes, [&](const Index& i) {
      windows.for_factors(i, x.sizes, w.sizes, [&](const Index& a, const Index& b) { r[i] += x[a] * w[b]; });
    });
    put(y, std::move(r));
  }
  void matmul(const Descriptor& op) {
    const Descriptor& c = op.other(dnn::operation_matmul_c);
    Value r(sizes_of(c)), a = get(op.other(dnn::operation_matmul_a)), b = get(op.other(dnn::operation_matmul_b));
    const int64_t heads = r.sizes[1];
    for_each(r.sizes, [&](const Index& i) {
      for (int64_t k = 0; k < a.sizes[3]; ++k) {
        r[i] += a[{i[0], i[1] * a.sizes[1] / heads, i[2], k, 0}] * b[{i[0], i[1] * b.sizes[1] / heads, k, i[3], 0}];
      }
    });
    put(c, std::move(r));
  }
  void reduce(const Descriptor& op) {
    const bool most =
        op.other(dnn::operation_reduction_what).get<int>(dnn::reduction_operator).at(0) == dnn::reduction_max;
    const Descriptor& y = op.other(dnn::operation_reduction_y);
    Value x = get(op.other(dnn::operation_reduction_x));
    Value r(sizes_of(y), most ? -std::numeric_limits<double>::infinity() : 0);
    for_each(x.sizes, [&](const Index& i) {
      double& to = r.spread(i, x.sizes);
      to = most ? std::max(to, x[i]) : to + x[i];
    });
    put(y, std::move(r));
  }
  /// The only change of dimensions is that of the last two.
  void reshape(const Descriptor& op) {
    const Descriptor& y = op.other(dnn::operation_reshape_y);
    Value r(sizes_of(y)), x = get(op.other(dnn::operation_reshape_x));
    for_each(r.sizes, [&](const Index& i) { r[i] = x[{i[0], i[1], i[3], i[2], 0}]; });
    put(y, std::move(r));
  }
};

void run_program(void* argument) {
  const std::unique_ptr<Program> p(static_cast<Program*>(argument));
  for (const Shared& op : p->graph->others.at(dnn::graph_operations)) {
    switch (op->kind) {
      case dnn::operation_forward: p->convolution(*op); break;
      case dnn::operation_pointwise: p->pointwise(*op); break;
      case dnn::operation_matmul: p->matmul(*op); break;
      case dnn::operation_reduction: p->reduce(*op); break;
      case dnn::operation_reshape: p->reshape(*op); break;
      default: std::abort();
    }
  }
}

/// Whether a graph is a convolution and nothing else.
bool is_convolution(const Descriptor& graph) {
  if (graph.others.at(dnn::graph_operations).size() != 1) return false;
  const int kind = graph.other(dnn::graph_operations).kind;
  return kind == dnn::operation_forward || kind == dnn::operation_input_gradient ||
         kind == dnn::operation_weight_gradient;
}

bool told(const char* what) {
  const char* text = std::getenv("FAKE_CUDNN");
  return text && std::strcmp(text, what) == 0;
}

/// Notes that a configuration's engine is not deterministic.
void note(Descriptor& config) {
  const int number = dnn::note_nondeterministic;
  std::vector<uint8_t>& bytes = config.values[dnn::engine_numerical_note];
  bytes.resize(sizeof number);
  std::memcpy(bytes.data(), &number, sizeof number);
}

/// Queues a graph that is more or other than a convolution.
void queue_program(const Shared& graph, const std::map<int64_t, void*>& pointers) {
  auto* p = new Program{graph, pointers, {}, {}};
  for (const Shared& op : graph->others.at(dnn::graph_operations)) {
    for (const auto& [name, of] : op->others) {
      const Descriptor& t = *of.at(0);
      if (t.kind == dnn::tensor && t.values.count(dnn::tensor_is_by_value))
        p->numbers[Program::id_of(t)] = *static_cast<const float*>(pointers.at(Program::id_of(t)));
    }
  }
  ++(graph->other(dnn::graph_operations).kind == dnn::operation_forward ? joined : programs);
  enqueue(stream_of_handle, run_program, p);
}

}  // namespace

#define EXPORT extern "C" __attribute__((visibility("default")))

EXPORT uint64_t fake_convolutions() { return convolutions; }
EXPORT uint64_t fake_undetermined() { return undetermined; }
EXPORT uint64_t fake_joined() { return joined; }
EXPORT uint64_t fake_programs() { return programs; }
EXPORT size_t cudnnGetVersion() { return 90100; }
EXPORT int cudnnCreate(void** handle) {
  *handle = &convolutions;
  return 0;
}
EXPORT int cudnnSetStream(void*, void* stream) {
  stream_of_handle = stream;
  return 0;
}
EXPORT const char* cudnnGetErrorString(int) { return "an error"; }
EXPORT void cudnnGetLastErrorString(char* to, size_t size) {
  if (size) *to = 0;
}
EXPORT int cudnnBackendCreateDescriptor(int kind, void** to) {
  auto* d = new Shared(std::make_shared<Descriptor>());
  (*d)->kind = kind;
  *to = d;
  return 0;
}
EXPORT int cudnnBackendDestroyDescriptor(void* d) {
  delete static_cast<Shared*>(d);
  return 0;
}
EXPORT int cudnnBackendFinalize(void*) { return 0; }
EXPORT int cudnnBackendSetAttribute(void* raw, int attribute, int type, int64_t count, const void* from) {
  Descriptor& d = *shared(raw);
  if (type == dnn::type_descriptor) {
    for (int64_t i = 0; i < count; ++i) d.others[attribute].push_back(shared(static_cast<void* const*>(from)[i]));
  } else {
    const auto* bytes = static_cast<const uint8_t*>(from);
    d.values[attribute].assign(bytes, bytes + size_t(count) * bytes_of(type));
  }
  return 0;
}
EXPORT int cudnnBackendGetAttribute(void* raw, int attribute, int, int64_t wanted, int64_t* count, void* to) {
  Descriptor& d = *shared(raw);
  *count = 0;
  if (attribute == dnn::heuristic_results) {  // a proposal is the graph itself, with the notes of its engine
    if (told("convolutions") && !is_convolution(d.other(dnn::heuristic_graph))) return 0;
    *count = told("undetermined") ? 2 : 1;
    for (int64_t i = 0; i < std::min(wanted, *count); ++i) {
      Descriptor& config = *shared(static_cast<void**>(to)[i]);
      config.others = d.others;
      if (told("undetermined") && i == 0) note(config);
    }
  } else if (attribute == dnn::config_engine) {
    shared(*static_cast<void**>(to))->values = d.values;
  } else if (attribute == dnn::engine_numerical_note) {
    const auto notes = d.get<int>(attribute);
    *count = int64_t(notes.size());
    std::copy_n(notes.begin(), std::min(wanted, *count), static_cast<int*>(to));
  } else if (attribute == dnn::plan_workspace) {
    *count = 1;
    *static_cast<int64_t*>(to) = 64;
  }
  return 0;
}
EXPORT int cudnnBackendExecute(void*, void* plan, void* pack) {
  undetermined += shared(plan)->other(dnn::plan_config).values.count(dnn::engine_numerical_note);
  const Shared& graph = shared(plan)->other(dnn::plan_config).others.at(dnn::heuristic_graph).at(0);
  const auto ids = shared(pack)->get<int64_t>(dnn::pack_ids);
  const auto addresses = shared(pack)->get<void*>(dnn::pack_pointers);
  std::map<int64_t, void*> pointers;
  for (size_t i = 0; i < ids.size(); ++i) pointers[ids[i]] = addresses[i];
  if (!is_convolution(*graph)) {
    queue_program(graph, pointers);
    return 0;
  }
  const Descriptor& operation = graph->other(dnn::graph_operations);
  const int first = operation.kind == dnn::operation_forward          ? dnn::forward_convolution
                    : operation.kind == dnn::operation_input_gradient ? dnn::input_gradient_convolution
                                                                      : dnn::weight_gradient_convolution;
  // the attributes of each kind follow its convolution: forward w, x, y; input gradient w, dx, dy; the weight's dw, x,
  // dy
  const bool weight = operation.kind == dnn::operation_weight_gradient;
  const int x = weight ? int(dnn::weight_gradient_x) : first + 2, w = weight ? int(dnn::weight_gradient_dw) : first + 1;
  const Descriptor& c = operation.other(first);
  ++convolutions;
  enqueue(stream_of_handle, run,
          new Work{operation.kind, Operand(operation.other(x), pointers), Operand(operation.other(w), pointers),
                   Operand(operation.other(first + 3), pointers), Windows(c)});
  return 0;
}
