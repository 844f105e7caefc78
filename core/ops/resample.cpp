#include <vesta/core/ops/resample.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <optional>
#include <utility>

#include <vesta/core/dispatch/layer.h>
#include <vesta/core/ops/checks.h>
#include <vesta/core/ops/copy.h>
#include <vesta/core/ops/copy_values.h>
#include <vesta/core/ops/define.h>
#include <vesta/core/ops/destination.h>
#include <vesta/core/ops/docs/resample.h>
#include <vesta/core/ops/factory.h>
#include <vesta/core/ops/index.h>
#include <vesta/core/ops/kernel_checks.h>
#include <vesta/core/ops/memory_format.h>
#include <vesta/core/ops/pad.h>
#include <vesta/core/ops/register.h>
#include <vesta/core/ops/view.h>
#include <vesta/core/ops/window.h>
#include <vesta/core/torch_rules.h>

namespace vesta {

VESTA_DEFINE_OPS(VESTA_OPS_RESAMPLE)

// ---- Rows ----

void Rows::add(int64_t place, double weight) {
  places_.push_back(place);
  weights_.push_back(weight);
  copies_ = copies_ && weight == 1;
}

void Rows::add_range(int64_t first, int64_t last, double weight) {
  for (int64_t p = first; p < last; ++p) add(p, weight);
  end_row();
}

Rows Rows::transposed() const {
  Rows t(size());
  t.copies_ = copies_;
  t.starts_.assign(size_t(in_ + 1), 0);
  t.places_.resize(places_.size());
  t.weights_.resize(places_.size());
  for (int64_t p : places_) ++t.starts_[size_t(p + 1)];
  for (size_t i = 1; i < t.starts_.size(); ++i) t.starts_[i] += t.starts_[i - 1];
  std::vector<int64_t> next(t.starts_.begin(), t.starts_.end() - 1);
  for (int64_t row = 0; row < size(); ++row) {
    for (int64_t k = starts_[size_t(row)]; k < starts_[size_t(row + 1)]; ++k) {
      const size_t at = size_t(next[size_t(places_[size_t(k)])]++);
      t.places_[at] = row, t.weights_[at] = weights_[size_t(k)];
    }
  }
  return t;
}

Tensor Rows::indices(Device device) const {
  Tensor t = empty({int64_t(starts_.size() + places_.size())}, DType::int64);
  std::ranges::copy(places_, std::ranges::copy(starts_, t.data_ptr<int64_t>()).out);
  return table_on(t, device);
}

Tensor Rows::weights(DType dtype, Device device) const {
  Tensor t = empty({int64_t(weights_.size())}, DType::float64);
  std::ranges::copy(weights_, t.data_ptr<double>());
  return table_on(t.to(dtype), device);
}

static std::array<std::atomic<KeepTable>, kNumDeviceTypes> table_keepers{};

void set_table_keeper(DeviceType type, KeepTable keep) { table_keepers[size_t(type)] = keep; }

Tensor table_on(const Tensor& table, Device device) {
  const KeepTable keep = table_keepers[size_t(device.type())];
  if (!keep) return table.to(device);
  const Tensor t = contiguous_values(table);
  StoragePtr memory = keep(t.impl()->data(), size_t(t.numel()) * size_t(itemsize(t.dtype())), device);
  return Tensor(TensorImpl::make(std::move(memory), t.sizes(), t.strides(), 0, t.dtype(), "table"));
}

Tensor resample(const Tensor& input, int64_t dim, const Rows& rows) {
  const Device device = input.device();
  if (input.is_complex() && !rows.copies()) {
    const int64_t d = wrap_dim(dim, input.dim(), "resample");
    return view_as_complex(contiguous(resample(view_as_real(input), d, rows)));
  }
  if (!is_float(input.dtype())) {
    VESTA_CHECK(rows.copies(), not_implemented, "resample: expected a floating-point dtype, got ", input.dtype(), ".");
    Tensor places = empty({rows.size()}, DType::int64);
    std::ranges::copy(rows.places(), places.data_ptr<int64_t>());
    return index_select(input, dim, table_on(places, device));
  }
  const DType dtype = compute_type(input.dtype());
  Tensor back, back_weights;
  if (GradMode::enabled() && input.requires_grad()) {
    const Rows t = rows.transposed();
    back = t.indices(device), back_weights = t.weights(dtype, device);
  }
  return _resample(input, dim, rows.size(), rows.indices(device), rows.weights(dtype, device), back, back_weights);
}

Tensor resample_planes(const Tensor& input, int64_t dim, const Rows& rows, const Rows& columns) {
  const Device device = input.device();
  const DType dtype = compute_type(input.dtype());
  Tensor back[4];
  if (GradMode::enabled() && input.requires_grad()) {
    const Rows r = rows.transposed(), c = columns.transposed();
    back[0] = r.indices(device), back[1] = r.weights(dtype, device);
    back[2] = c.indices(device), back[3] = c.weights(dtype, device);
  }
  return _resample_planes(input, dim, {rows.size(), columns.size()}, rows.indices(device), rows.weights(dtype, device),
                          columns.indices(device), columns.weights(dtype, device), back[0], back[1], back[2], back[3]);
}

Tensor _resample_planes_composite(const Tensor& input, int64_t dim, IntList size, const Tensor& rows,
                                  const Tensor& weights, const Tensor& columns, const Tensor& column_weights,
                                  MaybeTensor back_rows, MaybeTensor back_weights, MaybeTensor back_columns,
                                  MaybeTensor back_column_weights) {
  const int64_t d = check_resample_planes(input, dim, size, rows, weights, columns, column_weights);
  const Tensor x = input.to(compute_type(input.dtype()));
  const Tensor y = _resample(x, d, size[0], rows, weights, back_rows, back_weights);
  return _resample(y, d + 1, size[1], columns, column_weights, back_columns, back_column_weights).to(input.dtype());
}

// A result on the meta device has none either: tables for it would take time and memory.
bool has_elements(IntSpan sizes, const Tensor& x) {
  return empty_tensor(sizes, x.dtype(), x.device()).numel() > 0 && has_values(x);
}

namespace {

/// Gives a tensor without values other sizes, all but the first: by a resampling whose tables are without values too.
Tensor resized_without_values(const Tensor& x, IntSpan sizes) {
  const int64_t n = sizes[0], from = numel_of(x.sizes().subspan(1), "resample"),
                to = numel_of(sizes.subspan(1), "resample");
  const auto table = [&](int64_t size, DType dtype) { return empty({size}, dtype, x.device()); };
  const Tensor rows = reshape(x, {n, from});
  if (!is_float(x.dtype())) return reshape(index_select(rows, 1, table(to, DType::int64)), sizes);
  const Tensor weights = table(0, compute_type(x.dtype()));
  return reshape(_resample(rows, 1, to, table(to + 1, DType::int64), weights, table(from + 1, DType::int64), weights),
                 sizes);
}

}  // namespace

Tensor without_elements(const Tensor& x, IntSpan sizes) {
  if (!has_values(x) && numel_of(sizes, "resample") > 0) {
    const Tensor r = resized_without_values(x, sizes);
    return sizes.size() == size_t(x.dim()) && suggests_channels_last(x) ? to_channels_last(r) : r;
  }
  return reshape(narrow(x, 0, 0, 0), sizes);
}

namespace {

void check_matrix(const char* op, const Tensor& input, int64_t size, const Tensor& rows, const Tensor& weights) {
  VESTA_CHECK(rows.dtype() == DType::int64 && rows.dim() == 1 && weights.dim() == 1 && size >= 0 &&
                  rows.numel() == size + 1 + weights.numel() && rows.is_contiguous() && weights.is_contiguous() &&
                  weights.dtype() == compute_type(input.dtype()),
              value, op, ": expected ", size, " rows and their weights, got ", rows.sizes(), " (rows) and ",
              weights.sizes(), " (weights).");
}

}  // namespace

int64_t check_resample(const Tensor& input, int64_t dim, int64_t size, const Tensor& rows, const Tensor& weights) {
  constexpr const char* op = "_resample";
  check_floating(input, op);
  const int64_t d = wrap_dim(dim, input.dim(), op);
  check_matrix(op, input, size, rows, weights);
  return d;
}

int64_t check_resample_planes(const Tensor& input, int64_t dim, IntList size, const Tensor& rows, const Tensor& weights,
                              const Tensor& columns, const Tensor& column_weights) {
  constexpr const char* op = "_resample_planes";
  check_floating(input, op);
  const int64_t d = wrap_dim(dim, input.dim(), op);
  VESTA_CHECK(d + 1 < input.dim() && size.size() == 2, value, op, ": expected two dimensions from `dim` on and two ",
              "sizes, got dim ", dim, " of ", input.sizes(), " (input) and ", IntSpan(size), " (size).");
  check_matrix(op, input, size[0], rows, weights);
  check_matrix(op, input, size[1], columns, column_weights);
  return d;
}

// ---- Padding ----

namespace {

/// Returns the sizes of a padded tensor, `pad` being {before, after} of the last dimension, of the one before, ...
Dims padded_sizes(const Tensor& input, IntList pad, const char* op) {
  VESTA_CHECK(pad.size() % 2 == 0, runtime, op, ": Length of pad must be even but instead it equals ", pad.size(), ".");
  VESTA_CHECK(int64_t(pad.size() / 2) <= input.dim(), runtime, op,
              ": Length of pad should be no more than twice the number of dimensions of the input. Pad length is ",
              pad.size(), " while the input has ", input.dim(), " dimensions.");
  Dims sizes(input.sizes());
  for (size_t i = 0; i < pad.size(); i += 2) {
    int64_t& n = sizes[sizes.size() - 1 - i / 2];
    const int64_t wide = checked_add(checked_add(n, pad[i], op), pad[i + 1], op);
    VESTA_CHECK(wide >= 0, runtime, op, ": The input size ", n, ", plus negative padding ", pad[i], " and ", pad[i + 1],
                ", resulted in a negative output size.");
    n = wide;
  }
  return sizes;
}

Tensor constant_pad_kernel(const Tensor& input, IntList pad, Scalar value) {
  const Padding p = lay_out_padding(input, pad);
  const Tensor middle = p.middle();
  if (middle.numel() != p.result.numel()) fill_(p.result, value);
  copy_(middle, p.part);
  return p.result;
}

/// Where the padding modes read: the index in [0, n) of position p, which may be outside.
int64_t source_of(Text mode, int64_t p, int64_t n) {
  if (mode == "replicate") return std::clamp<int64_t>(p, 0, n - 1);
  if (mode == "reflect") return p < 0 ? -p : p >= n ? 2 * (n - 1) - p : p;
  return p < 0 ? p + n : p >= n ? p - n : p;  // circular
}

constexpr int64_t kLongSignal = 512;  // elements, from which tables for all of them cost more than two copies

/// Returns what a padding mode puts at positions [first, last) outside of x's dimension d.
Tensor border(const Tensor& x, int64_t d, Text mode, int64_t first, int64_t last) {
  const int64_t n = x.size(d), a = source_of(mode, first, n), b = source_of(mode, last - 1, n), low = std::min(a, b);
  Rows rows(std::max(a, b) - low + 1);
  for (int64_t p = first; p < last; ++p) rows.copy(source_of(mode, p, n) - low);
  return resample(narrow(x, d, low, rows.in()), d, rows);
}

/// Pads a long dimension: what stays is copied, and only borders are looked up.
Tensor pad_signal(const Tensor& x, int64_t d, Text mode, int64_t before, int64_t after) {
  const int64_t n = x.size(d);
  std::vector<Tensor> parts;
  if (before > 0) parts.push_back(border(x, d, mode, -before, 0));
  parts.push_back(x);
  if (after > 0) parts.push_back(border(x, d, mode, n, n + after));
  return cat(parts, d);
}

}  // namespace

Tensor Padding::middle() const {
  Tensor t = result;
  for (int64_t d = 0; d < t.dim(); ++d) t = narrow(t, d, before[size_t(d)], part.size(d));
  return t;
}

Padding lay_out_padding(const Tensor& input, IntList pad) {
  constexpr const char* op = "constant_pad_nd";
  const Dims sizes = padded_sizes(input, pad, op);
  Padding p{input, {}, Dims(size_t(input.dim()), 0)};
  for (size_t i = 0; i < pad.size(); i += 2) {
    const int64_t d = input.dim() - 1 - int64_t(i / 2), n = input.size(d);
    const int64_t first = std::clamp<int64_t>(-pad[i], 0, n), last = std::clamp(n + pad[i + 1], first, n);
    p.part = narrow(p.part, d, first, last - first);
    p.before[size_t(d)] = std::clamp<int64_t>(pad[i], 0, sizes[size_t(d)] - (last - first));
  }
  const bool cropped = std::ranges::all_of(pad, [](int64_t n) { return n <= 0; });
  p.result = cropped ? empty_preserving(p.part, input.dtype(), input.device())  // as a copy of it, which PyTorch makes
                     : image_result(sizes, suggests_channels_last(input), input.dtype(), input.device());
  return p;
}

Tensor pad_composite(const Tensor& input, IntList pad, Text mode, MaybeDouble value) {
  constexpr const char* op = "pad";
  if (mode == "constant") return constant_pad_nd(input, pad, Scalar(value.value_or(0)));
  VESTA_CHECK(!value || *value == 0, value, op, ": Padding mode \"", mode, "\" doesn't take in value argument.");
  VESTA_CHECK(mode == "reflect" || mode == "replicate" || mode == "circular", not_implemented, op,
              ": expected mode 'constant', 'reflect', 'replicate' or 'circular', got '", mode, "'.");
  const int64_t dims = int64_t(pad.size() / 2);
  VESTA_CHECK(dims >= 1 && dims <= 3 && (input.dim() == dims + 1 || input.dim() == dims + 2), not_implemented, op,
              ": Only 2D, 3D, 4D, 5D padding with non-constant padding are supported for now: expected 2 numbers for ",
              "2-d and 3-d inputs, 4 for 3-d and 4-d, 6 for 4-d and 5-d, got ", IntSpan(pad), " and an input ",
              input.sizes(), ".");
  const Dims sizes = padded_sizes(input, pad, op);
  Tensor x = input;
  const bool elements = has_elements(sizes, input);
  std::optional<Rows> columns;  // of the last dimension, until the one before it is known
  for (int64_t i = 0; i < dims; ++i) {
    const int64_t d = input.dim() - 1 - i, n = input.size(d), before = pad[size_t(2 * i)],
                  after = pad[size_t(2 * i + 1)];
    const int64_t most = std::max(before, after);
    VESTA_CHECK(n > 0 && (mode == "replicate" || most <= (mode == "reflect" ? n - 1 : n)), runtime, op,
                mode == "circular" ? ": Padding value causes wrapping around more than once: padding ("
                                   : ": Padding size should be less than the corresponding input dimension, but got: "
                                     "padding (",
                before, ", ", after, ") at dimension ", d, " of input ", input.sizes(), ".");
    if (!elements || (before == 0 && after == 0)) continue;
    if (dims == 1 && n >= kLongSignal && most > 0 && most <= n / 4 && std::min(before, after) >= 0) {
      x = pad_signal(x, d, mode, before, after);
      continue;
    }
    Rows rows(n);
    if (mode == "circular") {  // what negative padding cuts off is not seen by the other side
      const int64_t first = std::max<int64_t>(-before, 0), kept = n - first - std::max<int64_t>(-after, 0);
      VESTA_CHECK(most <= kept, runtime, op, ": Padding value causes wrapping around more than once: padding (", before,
                  ", ", after, ") at dimension ", d, " of input ", input.sizes(), ".");
      for (int64_t p = -std::max<int64_t>(before, 0); p < kept + std::max<int64_t>(after, 0); ++p) {
        rows.copy(first + source_of(mode, p, kept));
      }
    } else {
      for (int64_t p = -before; p < n + after; ++p) rows.copy(source_of(mode, p, n));
    }
    if (i == 0 && dims > 1 && kFloats.has(x.dtype())) {
      columns = std::move(rows);
    } else if (i == 1 && columns) {  // two dimensions in one pass
      x = resample_planes(x, d, rows, *std::exchange(columns, {}));
    } else {
      if (columns) x = resample(x, input.dim() - 1, *std::exchange(columns, {}));
      x = resample(x, d, rows);
    }
  }
  if (columns) x = resample(x, input.dim() - 1, *columns);
  if (!elements) return without_elements(x, sizes);
  if (x.impl() == input.impl()) x = clone_image(x);
  if (mode == "circular") return contiguous(x);  // as PyTorch has it
  if (!is_float(x.dtype()) && suggests_channels_last(input)) x = to_channels_last(x);  // index_select's are contiguous
  constexpr const char* kReflection[] = {"ReflectionPad1DBackward0", "ReflectionPad2DBackward0",
                                         "ReflectionPad3DBackward0"};
  constexpr const char* kReplication[] = {"ReplicationPad1DBackward0", "ReplicationPad2DBackward0",
                                          "ReplicationPad3DBackward0"};
  return flat_step(x, (mode == "reflect" ? kReflection : kReplication)[dims - 1]);
}

// ---- Interpolation ----

namespace {

enum class Filter { nearest, nearest_exact, linear, cubic };

/// One dimension of an interpolation.
struct Interpolation {
  Filter filter;
  int64_t in, out;
  bool align_corners, antialias;
  MaybeDouble factor;  // the scale that the caller gave

  double step() const {
    if (align_corners) return out > 1 ? double(in - 1) / double(out - 1) : 0;
    return factor && *factor > 0 ? 1 / *factor : double(in) / double(out);
  }
  Rows rows() const {
    Rows r(in);
    for (int64_t o = 0; o < out; ++o) {
      if (filter == Filter::nearest || filter == Filter::nearest_exact) r.copy(nearest(o));
      else if (antialias) add_antialiased(r, o);
      else if (filter == Filter::linear) add_linear(r, o);
      else add_cubic(r, o);
    }
    return r;
  }

 private:
  /// PyTorch computes indices of nearest neighbours in float32; so do we, for equal choices.
  int64_t nearest(int64_t o) const {
    if (in == out && !factor) return o;
    const float scale = factor && *factor > 0 ? float(1.0 / *factor) : float(in) / float(out);
    const float at = filter == Filter::nearest ? float(o) * scale : (float(o) + 0.5f) * scale;
    return std::min(int64_t(std::floor(at)), in - 1);
  }
  double source(int64_t o) const { return align_corners ? step() * double(o) : step() * (double(o) + 0.5) - 0.5; }

  void add_linear(Rows& r, int64_t o) const {
    const double at = std::max(source(o), 0.0);
    const int64_t low = std::min(int64_t(at), in - 1), high = std::min(low + 1, in - 1);
    const double part = std::clamp(at - double(low), 0.0, 1.0);
    r.add(low, 1 - part);
    if (high != low && part != 0) r.add(high, part);
    else if (high == low) r.add(low, part);
    r.end_row();
  }
  /// Cubic convolution with a = -0.75 (Keys 1981), as in PyTorch.
  void add_cubic(Rows& r, int64_t o) const {
    const double at = source(o), low = std::floor(at), t = at - low;
    for (int64_t k = -1; k <= 2; ++k) {
      r.add(std::clamp<int64_t>(int64_t(low) + k, 0, in - 1), cubic(double(k) - t, -0.75));
    }
    r.end_row();
  }
  static double cubic(double x, double a) {
    x = std::abs(x);
    if (x < 1) return ((a + 2) * x - (a + 3)) * x * x + 1;
    if (x < 2) return (((x - 5) * x + 8) * x - 4) * a;
    return 0;
  }
  /// The filter stretched over what an output element covers, as Pillow does it; its cubic has a = -0.5.
  void add_antialiased(Rows& r, int64_t o) const {
    const double scale = step(), wide = std::max(scale, 1.0), half = filter == Filter::linear ? 1 : 2;
    const double center = scale * (double(o) + 0.5), support = half * wide;
    const int64_t first = std::max(int64_t(std::floor(center - support + 0.5)), int64_t(0));
    const int64_t last = std::min(int64_t(std::floor(center + support + 0.5)), in);
    std::vector<double> w;
    double sum = 0;
    for (int64_t p = first; p < last; ++p) {
      const double x = (double(p) - center + 0.5) / wide;
      w.push_back(filter == Filter::linear ? std::max(0.0, 1 - std::abs(x)) : cubic(x, -0.5));
      sum += w.back();
    }
    for (int64_t p = first; p < last; ++p) r.add(p, sum != 0 ? w[size_t(p - first)] / sum : w[size_t(p - first)]);
    r.end_row();
  }
};

/// What a mode's name says: the filter, and how many dimensions it has (0: any).
struct Mode {
  const char* name;
  Filter filter;
  int64_t dims;
};
constexpr Mode kModes[] = {{"nearest", Filter::nearest, 0},  {"nearest-exact", Filter::nearest_exact, 0},
                           {"linear", Filter::linear, 1},    {"bilinear", Filter::linear, 2},
                           {"trilinear", Filter::linear, 3}, {"bicubic", Filter::cubic, 2}};

/// Returns PyTorch's name of the step of an interpolation over so many dimensions.
const char* upsample_step(Filter filter, int64_t dims, bool antialias) {
  constexpr const char* kNearest[] = {"UpsampleNearest1DBackward0", "UpsampleNearest2DBackward0",
                                      "UpsampleNearest3DBackward0"};
  constexpr const char* kExact[] = {"UpsampleNearestExact1DBackward0", "UpsampleNearestExact2DBackward0",
                                    "UpsampleNearestExact3DBackward0"};
  constexpr const char* kLinear[] = {"UpsampleLinear1DBackward0", "UpsampleBilinear2DBackward0",
                                     "UpsampleTrilinear3DBackward0"};
  const size_t d = size_t(dims - 1);
  if (filter == Filter::nearest) return kNearest[d];
  if (filter == Filter::nearest_exact) return kExact[d];
  if (filter == Filter::linear) return antialias ? "UpsampleBilinear2DAaBackward0" : kLinear[d];
  return antialias ? "UpsampleBicubic2DAaBackward0" : "UpsampleBicubic2DBackward0";
}

}  // namespace

Tensor _interpolate_composite(const Tensor& input, IntList size, Text mode, bool align_corners, bool antialias,
                              MaybeDouble scale_d, MaybeDouble scale_h, MaybeDouble scale_w) {
  constexpr const char* op = "interpolate";
  const int64_t dims = input.dim() - 2;
  VESTA_CHECK(dims >= 1 && dims <= 3, not_implemented, op,
              ": Input Error: Only 3D, 4D and 5D input Tensors supported (", "got ", input.dim(), "D).");
  const auto* found = std::ranges::find_if(kModes, [&](const Mode& m) { return mode == m.name; });
  VESTA_CHECK(found != std::end(kModes), not_implemented, op, ": expected mode 'nearest', 'nearest-exact', 'linear', ",
              "'bilinear', 'bicubic', 'trilinear' or 'area', got '", mode, "'.");
  VESTA_CHECK(found->dims == 0 || found->dims == dims, not_implemented, op, ": Got ", input.dim(), "D input, but ",
              mode, " mode needs ", found->dims + 2, "D input.");
  VESTA_CHECK(is_float(input.dtype()) || (input.dtype() == DType::uint8 && found->dims == 0), not_implemented, op,
              ": expected a floating-point dtype, or uint8 with mode 'nearest' or 'nearest-exact', got ", input.dtype(),
              ".");
  VESTA_CHECK(int64_t(size.size()) == dims, runtime, op, ": expected ", dims, " sizes, got ", IntSpan(size), ".");
  VESTA_CHECK(!antialias || (dims == 2 && found->dims == 2), value, op,
              ": Anti-alias option is restricted to bilinear and bicubic modes and requires a 4-D tensor as input.");
  const MaybeDouble factors[] = {scale_d, scale_h, scale_w};
  for (int64_t d = 0; d < dims; ++d) {
    VESTA_CHECK(input.size(d + 2) > 0 && size[size_t(d)] > 0, runtime, op,
                ": Input and output sizes should be greater than 0, but got input ", input.sizes(), " and output ",
                IntSpan(size), ".");
  }
  VESTA_CHECK(input.size(1) > 0, runtime, op, ": Non-empty data tensor expected but got ", input.sizes(), ".");
  Dims result{input.size(0), input.size(1)};
  for (int64_t n : size) result.push_back(n);
  if (!has_elements(result, input)) {
    const bool same = !has_values(input) && std::ranges::equal(IntSpan(result), input.sizes());
    return same ? clone_image(input) : without_elements(input, result);
  }
  const auto along = [&](int64_t d) {
    return Interpolation{found->filter, input.size(d + 2), size[size_t(d)],
                         align_corners, antialias,         factors[place_of(d, dims)]};
  };
  const auto same = [&](int64_t d) {
    const Interpolation i = along(d);
    return i.in == i.out && (!i.factor || *i.factor == 1 || align_corners);
  };
  bool unchanged = true;
  for (int64_t d = 0; d < dims; ++d) unchanged = unchanged && same(d);
  if (unchanged) return clone_image(input);
  // 16-bit floats round once, at the end. The last dimension goes first where the image grows: it then is small.
  const bool planes = dims == 2 && is_float(input.dtype()) && !same(0) && !same(1);
  const char* step = upsample_step(found->filter, dims, antialias);
  if (planes) return named_step(resample_planes(input, 2, along(0).rows(), along(1).rows()), step);
  const bool cast = is_float(input.dtype()) && found->dims != 0;
  Tensor x = cast ? input.to(compute_type(input.dtype())) : input;
  for (int64_t i = 0; i < dims; ++i) {
    const bool grows = size[size_t(dims - 1)] > input.size(dims + 1);
    const int64_t d = grows ? dims - 1 - i : i;
    if (!same(d)) x = resample(x, d + 2, along(d).rows());
  }
  return named_step(x.to(input.dtype()), step);
}

// ---- Patches ----

namespace {

/// Returns where each element of the patches [KH, KW, OH, OW] lies in a plane; those in the padding are 0.
Rows patch_rows(const Window& w) {
  Rows rows(w.in[1] * w.in[2]);
  for (int64_t a = 0; a < w.kernel[1]; ++a) {
    for (int64_t b = 0; b < w.kernel[2]; ++b) {
      for (int64_t i = 0; i < w.out[1]; ++i) {
        const int64_t r = i * w.stride[1] - w.padding[1] + a * w.dilation[1];
        for (int64_t j = 0; j < w.out[2]; ++j) {
          const int64_t c = j * w.stride[2] - w.padding[2] + b * w.dilation[2];
          if (r >= 0 && r < w.in[1] && c >= 0 && c < w.in[2]) rows.add(r * w.in[2] + c, 1);
          rows.end_row();
        }
      }
    }
  }
  return rows;
}

/// Works out the windows of unfold and fold over planes of this size.
Window patch_window(IntSpan plane, IntList kernel, IntList dilation, IntList padding, IntList stride, const char* op) {
  const Spatial k = spatial_of(kernel, 2, 1, 1, op, "kernel_size");
  return conv_window(Dims{1, 1, plane[0], plane[1]}, Dims{1, 1, k[1], k[2]}, stride, padding, dilation, 1, op);
}

/// Returns the windows of padded images as a view: [N, C, KH, KW, OH, OW].
Tensor windows_of(const Tensor& x, const Window& w) {
  const IntSpan step = x.strides();
  return as_strided(x, {x.size(0), x.size(1), w.kernel[1], w.kernel[2], w.out[1], w.out[2]},
                    {step[0], step[1], w.dilation[1] * step[2], w.dilation[2] * step[3], w.stride[1] * step[2],
                     w.stride[2] * step[3]});
}

}  // namespace

Tensor im2col_composite(const Tensor& input, IntList kernel_size, IntList dilation, IntList padding, IntList stride) {
  constexpr const char* op = "im2col";
  VESTA_CHECK(input.dim() == 3 || input.dim() == 4, runtime, op,
              ": Expected 3D or 4D (batch mode) tensor for input with possibly 0 batch size and non-zero dimensions, ",
              "but got: ", input.sizes(), ".");
  Tensor x = input.dim() == 3 ? unsqueeze(input, 0) : input;
  VESTA_CHECK(x.size(1) > 0 && x.size(2) > 0 && x.size(3) > 0, runtime, op,
              ": Expected non-zero dimensions, but got: ", input.sizes(), ".");
  Window w = patch_window(x.sizes().subspan(2), kernel_size, dilation, padding, stride, op);
  const Dims sizes{x.size(0), checked_mul(x.size(1), plane_of(w.kernel), op), plane_of(w.out)};
  if (!has_elements(sizes, x)) {
    return input.dim() == 3 ? squeeze(without_elements(x, sizes), 0) : without_elements(x, sizes);
  }
  const bool pads = w.padding[1] != 0 || w.padding[2] != 0;
  if (pads) x = constant_pad_nd(x, {w.padding[2], w.padding[2], w.padding[1], w.padding[1]});
  const Tensor patches = clone(windows_of(x, w), "contiguous_format");
  const Tensor r = reshape(patches, sizes);
  return named_step(input.dim() == 3 ? squeeze(r, 0) : r, "Im2ColBackward0");
}

Tensor col2im_composite(const Tensor& input, IntList output_size, IntList kernel_size, IntList dilation,
                        IntList padding, IntList stride) {
  constexpr const char* op = "col2im";
  VESTA_CHECK(input.dim() == 2 || input.dim() == 3, runtime, op,
              ": Expected 2D or 3D (batch mode) tensor for input, but got ", input.sizes(), ".");
  if (!input.is_complex()) check_floating(input, op);
  const Spatial size = spatial_of(output_size, 2, 1, 1, op, "output_size");
  const Window w = patch_window(Dims{size[1], size[2]}, kernel_size, dilation, padding, stride, op);
  const Tensor x = input.dim() == 2 ? unsqueeze(input, 0) : input;
  const int64_t taps = plane_of(w.kernel), places = plane_of(w.out);
  VESTA_CHECK(x.size(1) > 0 && x.size(1) % taps == 0, runtime, op, ": Expected size of input's dimension 1 to be ",
              "divisible by the product of kernel_size, but got input.size(1)=", x.size(1),
              " and kernel_size=", IntSpan(kernel_size), ".");
  VESTA_CHECK(x.size(2) == places, runtime, op, ": Given output_size=", IntSpan(output_size),
              ", kernel_size=", IntSpan(kernel_size), ", dilation=", IntSpan(dilation), ", padding=", IntSpan(padding),
              ", stride=", IntSpan(stride),
              ", expected size of input's dimension 2 to match the calculated number of sliding ", "blocks ", places,
              ", but got ", x.size(2), ".");
  const int64_t channels = x.size(1) / taps;
  const Dims sizes{x.size(0), channels, size[1], size[2]};
  if (!has_elements(sizes, x)) {
    return input.dim() == 2 ? squeeze(without_elements(x, sizes), 0) : without_elements(x, sizes);
  }
  const auto apart = [&](int d) { return (w.kernel[d] - 1) * w.dilation[d] < w.stride[d]; };
  Tensor r;
  if (apart(1) && apart(2)) {  // windows that share nothing are copied to their positions
    const Tensor padded =
        zeros({x.size(0), channels, size[1] + 2 * w.padding[1], size[2] + 2 * w.padding[2]}, x.dtype(), x.device());
    copy_(windows_of(padded, w), reshape(x, {x.size(0), channels, w.kernel[1], w.kernel[2], w.out[1], w.out[2]}));
    r = contiguous(narrow(narrow(padded, 2, w.padding[1], size[1]), 3, w.padding[2], size[2]));
  } else {
    r = reshape(resample(reshape(x, {x.size(0), channels, taps * places}), 2, patch_rows(w).transposed()), sizes);
  }
  return named_step(input.dim() == 2 ? squeeze(r, 0) : r, "Col2ImBackward0");
}

namespace {
/// Rearranges dimensions and joins them to new ones, in memory of its own.
Tensor rearranged(const Tensor& x, IntList order, IntList sizes, bool channels_last) {
  const Tensor joined = reshape(permute(x, order), sizes);
  const Tensor r = joined.impl()->storage() == x.impl()->storage() ? clone(joined, "contiguous_format") : joined;
  return channels_last ? to_channels_last(r) : r;
}

void check_image(const Tensor& input, int64_t least, int64_t factor, const char* op, const char* argument) {
  VESTA_CHECK(input.dim() >= least, runtime, op, ": expects input to have at least ", least,
              " dimensions, but got input with ", input.dim(), " dimension(s).");
  VESTA_CHECK(factor > 0, runtime, op, ": expects a positive ", argument, ", but got ", factor, ".");
}
}  // namespace

Tensor pixel_shuffle_composite(const Tensor& input, int64_t upscale_factor) {
  constexpr const char* op = "pixel_shuffle";
  check_image(input, 3, upscale_factor, op, "upscale_factor");
  const int64_t r = upscale_factor, c = input.size(-3), h = input.size(-2), w = input.size(-1);
  const int64_t area = checked_mul(r, r, op);
  VESTA_CHECK(c % area == 0, runtime, op, ": expects its input's 'channel' dimension to be divisible by the square of ",
              "upscale_factor, but input.size(-3)=", c, " is not divisible by ", area, ".");
  Dims sizes(input.sizes().first(size_t(input.dim() - 3))), split(sizes);
  for (int64_t n : {c / area, r, r, h, w}) split.push_back(n);
  for (int64_t n : {c / area, h * r, w * r}) sizes.push_back(n);
  Tensor x = reshape(input, split);
  const int64_t d = input.dim() - 3;
  Dims order;
  for (int64_t i = 0; i <= d; ++i) order.push_back(i);
  for (int64_t i : {3, 1, 4, 2}) order.push_back(d + i);
  return named_step(rearranged(x, order, sizes, suggests_channels_last(input)), "PixelShuffleBackward0");
}

Tensor pixel_unshuffle_composite(const Tensor& input, int64_t downscale_factor) {
  constexpr const char* op = "pixel_unshuffle";
  check_image(input, 3, downscale_factor, op, "downscale_factor");
  const int64_t r = downscale_factor, c = input.size(-3), h = input.size(-2), w = input.size(-1);
  VESTA_CHECK(h % r == 0 && w % r == 0, runtime, op, ": expects height and width to be divisible by downscale_factor, ",
              "but got input ", input.sizes(), " and ", r, ".");
  Dims sizes(input.sizes().first(size_t(input.dim() - 3))), split(sizes);
  for (int64_t n : {c, h / r, r, w / r, r}) split.push_back(n);
  for (int64_t n : {checked_mul(c, checked_mul(r, r, op), op), h / r, w / r}) sizes.push_back(n);
  Tensor x = reshape(input, split);
  const int64_t d = input.dim() - 3;
  Dims order;
  for (int64_t i = 0; i <= d; ++i) order.push_back(i);
  for (int64_t i : {2, 4, 1, 3}) order.push_back(d + i);
  return named_step(rearranged(x, order, sizes, suggests_channels_last(input)), "PixelUnshuffleBackward0");
}

Tensor channel_shuffle_composite(const Tensor& input, int64_t groups) {
  constexpr const char* op = "channel_shuffle";
  check_image(input, 3, groups, op, "groups");
  const int64_t c = input.size(1);
  VESTA_CHECK(c % groups == 0, runtime, op, ": Number of channels must be divisible by groups. Got ", c,
              " channels and ", groups, " groups.");
  const int64_t plane = numel_of(input.sizes().subspan(2), op);
  return rearranged(reshape(input, {input.size(0), groups, c / groups, plane}), {0, 2, 1, 3}, input.sizes(),
                    suggests_channels_last(input));
}

void register_resample_ops() { ops::constant_pad_nd.set_kernel(&constant_pad_kernel); }

}  // namespace vesta
