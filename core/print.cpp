// A tour: Reader reads elements by position, from host memory; Format chooses one format from the elements that will
// be shown; Printer writes them line by line; repr() adds what the values do not tell.
#include <vesta/core/print.h>

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <mutex>
#include <ostream>

#include <vesta/core/autograd_port.h>
#include <vesta/core/sparse.h>

namespace vesta {
namespace {

std::mutex options_mutex;
PrintOptions options;

/// A reader of a host tensor's elements at offsets counted in elements.
class Reader {
 public:
  explicit Reader(const Tensor& t) : data_(t.impl()->data()), dtype_(t.dtype()) {}
  std::string integer(int64_t at) const {
    return visit<kIntegers | kBool>(dtype_, [&]<class T>() -> std::string {
      T v = reinterpret_cast<const T*>(data_)[at];
      if constexpr (std::is_same_v<T, bool>) return v ? "True" : "False";
      else return std::to_string(v);
    });
  }
  double real(int64_t at) const {
    return visit<kFloats | kComplexes>(dtype_, [&]<class T>() {
      T v = reinterpret_cast<const T*>(data_)[at];
      if constexpr (is_complex(dtype_of<T>)) return double(v.real());
      else return double(compute_t<T>(v));
    });
  }
  double imag(int64_t at) const {
    return visit<kComplexes>(dtype_, [&]<class T>() { return double(reinterpret_cast<const T*>(data_)[at].imag()); });
  }

 private:
  const char* data_;
  DType dtype_;
};

/// The one format of all numbers of a tensor (or of their real or imaginary parts): PyTorch's rule.
class Format {
 public:
  explicit Format(const PrintOptions& o) : precision_(o.precision), sci_wish_(o.sci_mode) {}
  void see_text(const std::string& s) { width_ = std::max(width_, s.size()); }
  void see(double v) {
    if (!std::isfinite(v) || v == 0) return;
    values_.push_back(v);
    low_ = std::min(low_, std::fabs(v)), high_ = std::max(high_, std::fabs(v));
    whole_ = whole_ && v == std::ceil(v);
  }
  /// Chooses the format; call it once, after all values were seen.
  void choose() {
    if (values_.empty()) return;
    scientific_ = sci_wish_.value_or(high_ / low_ > 1000.0 || high_ > 1e8 || low_ < 1e-4);
    for (double v : values_) width_ = std::max(width_, number(v).size());
  }
  size_t width() const { return width_; }
  std::string pad(std::string s) const { return s.size() < width_ ? std::string(width_ - s.size(), ' ') + s : s; }
  std::string operator()(double v) const { return pad(number(v)); }

 private:
  std::string number(double v) const {
    if (std::isnan(v)) return "nan";  // never -nan
    if (std::isinf(v)) return v < 0 ? "-inf" : "inf";
    if (scientific_) return fmt::format("{:.{}e}", v, precision_);
    if (whole_) return fmt::format("{:.0f}.", v);
    return fmt::format("{:.{}f}", v, precision_);
  }

  int precision_;
  std::optional<bool> sci_wish_;
  bool whole_ = true, scientific_ = false;
  double low_ = INFINITY, high_ = 0;
  std::vector<double> values_;
  size_t width_ = 1;
};

class Printer {
 public:
  Printer(const Tensor& t, const PrintOptions& o)
      : t_(t), o_(o), read_(t), summary_(t.numel() > o.threshold), first_(o), second_(o) {
    scan(0, 0);
    first_.choose();
    second_.choose();
  }
  std::string text(int64_t indent) const { return part(0, 0, indent); }

 private:
  int64_t size(int64_t d) const { return t_.sizes()[size_t(d)]; }
  int64_t stride(int64_t d) const { return t_.strides()[size_t(d)]; }
  bool cut(int64_t d) const { return summary_ && size(d) > 2 * o_.edgeitems; }

  /// Calls f(index) for the shown indices of dimension d, and gap() in place of those left out.
  template <class F, class G>
  void shown(int64_t d, F f, G gap) const {
    int64_t n = size(d), edge = cut(d) ? o_.edgeitems : n;
    for (int64_t i = 0; i < edge; ++i) f(i);
    if (!cut(d)) return;
    gap();
    for (int64_t i = n - edge; i < n; ++i) f(i);
  }
  void scan(int64_t d, int64_t at) {
    if (d < t_.dim()) return shown(d, [&](int64_t i) { scan(d + 1, at + i * stride(d)); }, [] {});
    if (!is_differentiable(t_.dtype())) return first_.see_text(read_.integer(at));
    first_.see(read_.real(at));
    if (t_.is_complex()) second_.see(read_.imag(at));
  }
  std::string element(int64_t at) const {
    if (!is_differentiable(t_.dtype())) return first_.pad(read_.integer(at));
    std::string s = first_(read_.real(at));
    if (!t_.is_complex()) return s;
    std::string i = second_(read_.imag(at)) + "j";
    i.erase(0, i.find_first_not_of(' '));
    return s + (i[0] == '-' ? "" : "+") + i;
  }
  std::string part(int64_t d, int64_t at, int64_t indent) const {
    if (d == t_.dim()) return element(at);
    if (d == t_.dim() - 1) return line(d, at, indent);
    std::string s, gap = "," + std::string(size_t(t_.dim() - d - 1), '\n') + std::string(size_t(indent + 1), ' ');
    auto add = [&](const std::string& p) { s += (s.empty() ? "" : gap) + p; };
    shown(d, [&](int64_t i) { add(part(d + 1, at + i * stride(d), indent + 1)); }, [&] { add("..."); });
    return "[" + s + "]";
  }
  /// Writes the last dimension, as many elements to a line as fit.
  std::string line(int64_t d, int64_t at, int64_t indent) const {
    int64_t length = int64_t(first_.width()) + 2 + (t_.is_complex() ? int64_t(second_.width()) + 1 : 0);
    int64_t per_line = std::max<int64_t>(1, (o_.linewidth - indent) / length), count = 0;
    std::string s = "[";
    auto add = [&](const std::string& e) {
      if (count > 0) s += count % per_line ? ", " : ",\n" + std::string(size_t(indent + 1), ' ');
      s += e;
      ++count;
    };
    shown(d, [&](int64_t i) { add(element(at + i * stride(d))); }, [&] { add(o_.edgeitems ? " ..." : "..."); });
    return s + "]";
  }

  const Tensor& t_;
  const PrintOptions& o_;
  Reader read_;
  bool summary_;
  Format first_, second_;
};

std::string shape_text(IntSpan sizes) {
  std::string s = "size=(";
  for (size_t i = 0; i < sizes.size(); ++i) s += (i ? ", " : "") + std::to_string(sizes[i]);
  return s + (sizes.size() == 1 ? ",)" : ")");
}

/// Returns whether printed values tell this dtype.
bool follows_from_values(DType d) {
  DType standard = default_dtype();
  return d == standard || d == complex_type(standard) || d == DType::int64 || d == DType::bool_;
}

/// Lists what the values do not tell: device, shape if empty, dtype unless it follows from the values.
std::vector<std::string> facts(const Tensor& t, const PrintOptions& o) {
  std::vector<std::string> list;
  if (t.device().type() != DeviceType::cpu) list.push_back("device='" + str(t.device()) + "'");
  const bool meta = t.device().type() == DeviceType::meta, empty = t.numel() == 0 || meta;
  if (meta || (empty && t.dim() != 1) || (!empty && o.edgeitems == 0)) list.push_back(shape_text(t.sizes()));
  DType d = t.dtype();
  bool plain = empty ? d == default_dtype() : follows_from_values(d);
  if (!plain) list.push_back("dtype=vesta." + std::string(name(d)));
  return list;
}

/// Prints what a sparse tensor is made of: its elements, and the shape where there are none.
std::string part_text(const Tensor& t, const std::string& prefix) {
  NoGrad off;
  if (t.numel() == 0) return prefix + "[], " + shape_text(t.sizes()) + ")";
  const Tensor host = t.device().type() == DeviceType::cpu ? t : t.to(Device());
  return prefix + Printer(host, print_options()).text(int64_t(prefix.size())) + ")";
}

/// Prints a sparse tensor by its parts, each on a line.
std::string sparse_text(const Tensor& t, std::string_view suffix, std::string_view prefix) {
  const SparseParts& p = sparse_parts(t, "repr");
  const std::string margin(prefix.size(), ' ');
  std::string s(prefix);
  if (p.layout == SparseLayout::coo) {
    s = part_text(p.indices, s + "indices=tensor(") + ",\n";
  } else {
    const bool by_rows = p.layout == SparseLayout::csr;
    s = part_text(p.compressed, s + (by_rows ? "crow_indices=tensor(" : "ccol_indices=tensor(")) + ",\n";
    s += part_text(p.plain, margin + (by_rows ? "col_indices=tensor(" : "row_indices=tensor(")) + ",\n";
  }
  s += part_text(p.values, margin + "values=tensor(") + ",\n" + margin;
  if (t.device().type() != DeviceType::cpu) s += "device='" + str(t.device()) + "', ";
  s += shape_text(t.sizes()) + ", nnz=" + std::to_string(nnz(p));
  if (!follows_from_values(t.dtype())) s += ", dtype=vesta." + std::string(name(t.dtype()));
  constexpr const char* kLayouts[] = {"sparse_coo", "sparse_csr", "sparse_csc"};
  s += std::string(", layout=vesta.") + kLayouts[int(p.layout)];
  if (!suffix.empty()) s += ", " + std::string(suffix);
  return s + ")";
}

}  // namespace

PrintOptions print_options() {
  std::lock_guard lock(options_mutex);
  return options;
}

void set_print_options(const PrintOptions& o) {
  VESTA_CHECK(o.precision >= 0 && o.threshold >= 0 && o.edgeitems >= 0 && o.linewidth > 0, value,
              "set_printoptions: expected non-negative numbers and a positive linewidth.");
  std::lock_guard lock(options_mutex);
  options = o;
}

std::string repr(const Tensor& t, std::string_view suffix, std::string_view prefix) {
  if (!t.defined()) return "None";
  if (t.is_sparse()) return sparse_text(t, suffix, prefix);
  PrintOptions o = print_options();
  NoGrad off;
  int64_t indent = int64_t(prefix.size());
  std::string s(prefix);
  if (t.device().type() == DeviceType::meta) {
    s += "...";
  } else if (t.numel() == 0) {
    s += "[]";
  } else {
    Tensor host = t.device().type() == DeviceType::cpu ? t : t.to(Device());
    s += Printer(host, o).text(indent);
  }
  std::vector<std::string> list = facts(t, o);
  if (!suffix.empty()) list.emplace_back(suffix);
  size_t newline = s.rfind('\n');
  int64_t last = int64_t(s.size()) - (newline == std::string::npos ? -1 : int64_t(newline)) + 1;
  for (const std::string& fact : list) {
    bool wraps = last + int64_t(fact.size()) + 2 > o.linewidth;
    s += wraps ? ",\n" + std::string(size_t(indent), ' ') : ", ";
    s += fact;
    last = (wraps ? indent : last + 2) + int64_t(fact.size());
  }
  return s + ")";
}

std::string repr(const Tensor& t) {
  return repr(t, t.defined() && autograd_port.repr_suffix ? autograd_port.repr_suffix(t) : std::string());
}

std::ostream& operator<<(std::ostream& to, const Tensor& t) { return to << repr(t); }

}  // namespace vesta
