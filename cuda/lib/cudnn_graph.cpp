#include <vesta/cuda/lib/cudnn_graph.h>

#include <fmt/format.h>

#include <algorithm>

namespace vesta::cuda::cudnn {
namespace {

const Functions& f() { return Loaded::get().f; }

int data_type(DType d) {
  switch (d) {
    case DType::float32: return data_float;
    case DType::float64: return data_double;
    case DType::float16: return data_half;
    case DType::bfloat16: return data_bfloat16;
    case DType::int32: return data_int32;
    case DType::bool_: return data_boolean;
    default: throw Refused(fmt::format("no tensor of {}", vesta::name(d)));
  }
}

/// Lists the configurations that a heuristic proposes, best first; none if it refuses.
std::vector<Descriptor> proposals(const Descriptor& graph, const Target& target, Heuristic mode) {
  std::vector<Descriptor> configs;
  try {
    Descriptor heuristic(engine_heuristic);
    heuristic.set_descriptor(heuristic_graph, graph);
    heuristic.set_one<int>(heuristic_mode, type_heuristic_mode, mode);
    target.put(heuristic, Attribute(0), heuristic_device);
    heuristic.finalize();
    const int64_t count = heuristic.get(heuristic_results, type_descriptor, 0, nullptr);
    std::vector<RawDescriptor> raw;
    for (int64_t i = 0; i < count; ++i) raw.push_back(configs.emplace_back(engine_config).raw());
    const int64_t got = count ? heuristic.get(heuristic_results, type_descriptor, count, raw.data()) : 0;
    configs.resize(size_t(std::min(got, count)));
  } catch (const Refused&) {
    configs.clear();
  }
  return configs;
}

/// Returns the numerical notes of a configuration's engine.
std::vector<int> notes_of(const Descriptor& config) {
  Descriptor engine_of(engine);
  RawDescriptor raw = engine_of.raw();
  config.get(config_engine, type_descriptor, 1, &raw);
  std::vector<int> notes(note_count);
  const int64_t count = engine_of.get(engine_numerical_note, type_numerical_note, note_count, notes.data());
  notes.resize(size_t(std::min<int64_t>(count, note_count)));
  return notes;
}

/// Returns whether a configuration's engine keeps the choice's promises.
bool is_allowed(const Descriptor& config, const Choice& choice) {
  return std::ranges::none_of(notes_of(config), [&](int note) {
    return (choice.deterministic && note == note_nondeterministic) ||
           (!choice.tensor_cores && (note == note_tensor_core || note == note_down_convert)) ||
           note == note_reduced_reduction;  // sums of 16-bit floats must be in float
  });
}

}  // namespace

Loaded::Loaded() {
  library.resolve(&f.version, "cudnnGetVersion");
  library.resolve(&f.create, "cudnnCreate");
  library.resolve(&f.set_stream, "cudnnSetStream");
  library.resolve(&f.error_text, "cudnnGetErrorString");
  library.resolve(&f.last_error, "cudnnGetLastErrorString");
  library.resolve(&f.create_descriptor, "cudnnBackendCreateDescriptor");
  library.resolve(&f.destroy_descriptor, "cudnnBackendDestroyDescriptor");
  library.resolve(&f.finalize, "cudnnBackendFinalize");
  library.resolve(&f.set, "cudnnBackendSetAttribute");
  library.resolve(&f.get, "cudnnBackendGetAttribute");
  library.resolve(&f.execute, "cudnnBackendExecute");
  if (!library.usable()) return;
  if (const size_t v = f.version(); v < 90000 || v >= 100000) {
    library.refuse(fmt::format("cuDNN {} ({}) is not of version 9. Install nvidia-cudnn.", v, library.path()));
  }
}

Loaded& Loaded::get() {
  static Loaded* loaded = new Loaded;  // never destroyed: other threads may compute while the process ends
  return *loaded;
}

void check(Status status, const char* call) {
  if (status == 0) return;
  char text[1024] = "";
  f().last_error(text, sizeof text);
  throw Refused(fmt::format("{}: {} {}", call, f().error_text(status), text));
}

Descriptor::Descriptor(Kind kind) { check(f().create_descriptor(kind, &raw_), "cudnnBackendCreateDescriptor"); }
Descriptor::~Descriptor() {
  if (raw_) f().destroy_descriptor(raw_);
}
void Descriptor::set_raw(Attribute a, Type type, int64_t count, const void* values) {
  check(f().set(raw_, a, type, count, values), "cudnnBackendSetAttribute");
}
void Descriptor::finalize() { check(f().finalize(raw_), "cudnnBackendFinalize"); }
int64_t Descriptor::get(Attribute a, Type type, int64_t wanted, void* to) const {
  int64_t count = 0;
  check(f().get(raw_, a, type, wanted, &count, to), "cudnnBackendGetAttribute");
  return count;
}

Target Target::of_handle(Handle handle) {
  Target t;
  t.handle_ = handle;
  return t;
}

Target Target::of_json(const std::string& json) {
  Target t;
  t.device_ = Descriptor(device_properties);
  t.device_.set<char>(device_json, type_char, std::span<const char>(json));
  t.device_.finalize();
  return t;
}

void Target::put(Descriptor& d, Attribute as_handle, Attribute as_device) const {
  if (device_) d.set_descriptor(as_device, device_);
  else if (as_handle) put_handle(d, as_handle);
}

void Target::put_handle(Descriptor& d, Attribute as_handle) const {
  if (handle_) d.set_one<Handle>(as_handle, type_handle, handle_);
}

bool Plan::is_deterministic() const { return std::ranges::count(notes_of(config_), int(note_nondeterministic)) == 0; }

void Plan::run(Handle handle, std::span<const std::pair<int64_t, void*>> pointers, void* workspace) const {
  std::vector<int64_t> ids;
  std::vector<void*> addresses;
  for (auto [id, p] : pointers) ids.push_back(id), addresses.push_back(p);
  Descriptor pack(variant_pack);
  pack.set_numbers(pack_ids, ids);
  pack.set<void*>(pack_pointers, type_void_ptr, std::span<void* const>(addresses));
  pack.set_one<void*>(pack_workspace, type_void_ptr, workspace);
  pack.finalize();
  check(f().execute(handle, plan_.raw(), pack.raw()), "cudnnBackendExecute");
}

int Graph::tensor(int64_t id, const std::vector<int64_t>& sizes, const std::vector<int64_t>& strides, DType dtype) {
  return add_tensor(id, sizes, strides, dtype, tensor_id);
}

int Graph::between(const std::vector<int64_t>& sizes, DType dtype) {
  std::vector<int64_t> strides(sizes.size(), 1);
  for (size_t d = sizes.size() - 1; d-- > 0;) strides[d] = strides[d + 1] * sizes[d + 1];
  return between(sizes, strides, dtype);
}

int Graph::between(const std::vector<int64_t>& sizes, const std::vector<int64_t>& strides, DType dtype) {
  return add_tensor(1000 + between_++, sizes, strides, dtype, tensor_is_virtual);
}

int Graph::number(int64_t id, size_t dims) {
  const std::vector<int64_t> ones(dims, 1);
  return add_tensor(id, ones, ones, DType::float32, tensor_is_by_value);
}

int Graph::add_tensor(int64_t id, const std::vector<int64_t>& sizes, const std::vector<int64_t>& strides, DType dtype,
                      Attribute kind) {
  Descriptor t(cudnn::tensor);
  t.set_one<int>(tensor_data_type, type_data_type, data_type(dtype));
  t.set_numbers(tensor_dimensions, sizes);
  t.set_numbers(tensor_strides, strides);
  t.set_one<int64_t>(tensor_id, type_int64, id);
  t.set_one<int64_t>(tensor_alignment, type_int64, 16);
  if (kind != tensor_id) t.set_one<bool>(kind, type_boolean, true);
  t.finalize();
  tensors_.push_back(std::move(t));
  return int(tensors_.size()) - 1;
}

void Graph::add_operation(Kind kind, std::initializer_list<OfOperation> operands, Attribute what,
                          Descriptor attributes) {
  Descriptor op(kind);
  if (attributes) op.set_descriptor(what, attributes);
  for (const OfOperation& o : operands) op.set_descriptor(o.name, tensors_[size_t(o.place)]);
  op.finalize();
  if (attributes) attributes_.push_back(std::move(attributes));
  operations_.push_back(std::move(op));
}

int Graph::add_pointwise(Pointwise op, int64_t axis, int compute_type, std::initializer_list<OfOperation> operands,
                         int y) {
  Descriptor p(cudnn::pointwise);
  p.set_one<int>(pointwise_mode, type_pointwise_mode, op);
  p.set_one<int>(pointwise_compute_type, type_data_type, compute_type);
  if (axis >= 0) p.set_one<int64_t>(pointwise_axis, type_int64, axis);
  if (op == pointwise_relu) p.set_one<int>(pointwise_nan, type_nan, kKeepsNan);
  p.finalize();
  add_operation(operation_pointwise, operands, operation_pointwise_what, std::move(p));
  return y;
}

int Graph::pointwise(Pointwise op, int x, int b, int y) {
  const int type = op == pointwise_at_least ? data_boolean : data_float;
  return add_pointwise(op, -1, type,
                       {{operation_pointwise_x, x}, {operation_pointwise_b, b}, {operation_pointwise_y, y}}, y);
}
int Graph::pointwise(Pointwise op, int x, int y) {
  return add_pointwise(op, -1, data_float, {{operation_pointwise_x, x}, {operation_pointwise_y, y}}, y);
}
int Graph::index(int x, int64_t dim, int y) {
  return add_pointwise(pointwise_index, dim, data_int32, {{operation_pointwise_x, x}, {operation_pointwise_y, y}}, y);
}
int Graph::select(int t, int x, int b, int y) {
  return add_pointwise(
      pointwise_select, -1, data_float,
      {{operation_pointwise_x, x}, {operation_pointwise_b, b}, {operation_pointwise_t, t}, {operation_pointwise_y, y}},
      y);
}

int Graph::matmul(int a, int b, int c) {
  Descriptor m(cudnn::matmul);
  m.set_one<int>(matmul_compute_type, type_data_type, data_float);
  m.finalize();
  add_operation(operation_matmul, {{operation_matmul_a, a}, {operation_matmul_b, b}, {operation_matmul_c, c}},
                operation_matmul_what, std::move(m));
  return c;
}

int Graph::reduce(Reduction op, int x, int y) {
  Descriptor r(cudnn::reduction);
  r.set_one<int>(reduction_operator, type_reduction_operator, op);
  r.set_one<int>(reduction_compute_type, type_data_type, data_float);
  r.finalize();
  add_operation(operation_reduction, {{operation_reduction_x, x}, {operation_reduction_y, y}}, operation_reduction_what,
                std::move(r));
  return y;
}

int Graph::reshape(int x, int y) {
  add_operation(operation_reshape, {{operation_reshape_x, x}, {operation_reshape_y, y}}, Attribute(0), Descriptor());
  return y;
}

void Graph::convolution(Direction direction, int x, int w, int y, const ConvAttributes& a) {
  const int type = a.wide ? data_double : data_float;
  Descriptor c(cudnn::convolution);
  c.set_one<int64_t>(convolution_spatial_dims, type_int64, int64_t(a.padding.size()));
  c.set_one<int>(convolution_compute_type, type_data_type, type);
  c.set_one<int>(convolution_mode, type_convolution_mode, kCrossCorrelation);
  c.set_numbers(convolution_pre_paddings, a.padding);
  c.set_numbers(convolution_post_paddings, a.padding);
  c.set_numbers(convolution_strides, a.stride);
  c.set_numbers(convolution_dilations, a.dilation);
  c.finalize();
  struct Names {
    Kind kind;
    Attribute convolution, x, w, y, alpha, beta;
  };
  static constexpr Names kNames[] = {
      {operation_forward, forward_convolution, forward_x, forward_w, forward_y, forward_alpha, forward_beta},
      {operation_input_gradient, input_gradient_convolution, input_gradient_dx, input_gradient_w, input_gradient_dy,
       input_gradient_alpha, input_gradient_beta},
      {operation_weight_gradient, weight_gradient_convolution, weight_gradient_x, weight_gradient_dw,
       weight_gradient_dy, weight_gradient_alpha, weight_gradient_beta},
  };
  const Names& names = kNames[int(direction)];
  Descriptor op(names.kind);
  op.set_descriptor(names.convolution, c);
  op.set_descriptor(names.x, tensors_[size_t(x)]);
  op.set_descriptor(names.w, tensors_[size_t(w)]);
  op.set_descriptor(names.y, tensors_[size_t(y)]);
  if (a.wide) {
    op.set_one<double>(names.alpha, type_double, 1);
    op.set_one<double>(names.beta, type_double, 0);
  } else {
    op.set_one<float>(names.alpha, type_float, 1);
    op.set_one<float>(names.beta, type_float, 0);
  }
  op.finalize();
  attributes_.push_back(std::move(c));
  operations_.push_back(std::move(op));
}

Plan Graph::build(const Target& target, const Choice& choice) {
  Descriptor graph(operation_graph);
  std::vector<RawDescriptor> raw;
  for (const Descriptor& op : operations_) raw.push_back(op.raw());
  graph.set<RawDescriptor>(graph_operations, type_descriptor, std::span<const RawDescriptor>(raw));
  target.put_handle(graph, graph_handle);
  graph.finalize();
  std::string why = "no algorithm was proposed";
  for (Heuristic mode : {heuristic_a, heuristic_fallback}) {
    for (Descriptor& config : proposals(graph, target, mode)) {
      try {
        if (!is_allowed(config, choice)) continue;
        Plan p;
        p.plan_ = Descriptor(execution_plan);
        p.plan_.set_descriptor(plan_config, config);
        target.put(p.plan_, plan_handle, plan_device);
        p.plan_.finalize();
        p.plan_.get(plan_workspace, type_int64, 1, &p.workspace_);
        if (p.workspace_ > choice.workspace_limit) {
          why = fmt::format("a workspace of {} bytes is over the limit", p.workspace_);
          continue;
        }
        p.config_ = std::move(config);
        return p;
      } catch (const Refused& e) {
        why = e.what();
      }
    }
  }
  throw Refused(why);
}

}  // namespace vesta::cuda::cudnn
