// How libtorch prints: tensors as aligned columns that share a scale, with type and sizes below; lists and devices.
#pragma once
#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <iomanip>
#include <iostream>
#include <sstream>

#include <torch/tensor.h>

namespace torch::detail {

/// Restores a stream's format at the end of a scope.
class SavedFormat {
 public:
  explicit SavedFormat(std::ostream& to) : to_(to), saved_(nullptr) { saved_.copyfmt(to); }
  ~SavedFormat() { to_.copyfmt(saved_); }

 private:
  std::ostream& to_;
  std::ios saved_;
};

/// The width of a column and the number by which all elements are divided.
struct Columns {
  double scale = 1;
  int width = 0;
};

/// Chooses the columns for the elements of a tensor of doubles and sets the stream's notation.
inline Columns columns_for(std::ostream& to, const Tensor& t) {
  const double* values = t.const_data_ptr<double>();
  const int64_t count = t.numel();
  if (count == 0) return {};
  bool integers = true, any = false;
  double low = 0, high = 0;
  for (int64_t i = 0; i < count; ++i) {
    const double v = std::abs(values[i]);
    if (!std::isfinite(v)) continue;
    integers = integers && v == std::ceil(v);
    low = any ? std::min(low, v) : v, high = any ? std::max(high, v) : v;
    any = true;
  }
  const auto digits = [&](double v) { return !any || v == 0 ? 1 : int(std::floor(std::log10(v)) + 1); };
  const int least = digits(low), most = digits(high);
  const auto scientific = [&](int width) {
    to << std::scientific << std::setprecision(4);
    return Columns{1, width};
  };
  if (integers) {
    if (most > 9) return scientific(11);
    to << std::defaultfloat;
    return {1, most + 1};
  }
  if (most - least > 4) return scientific(11 + (std::abs(most) > 99 || std::abs(least) > 99));
  to << std::fixed << std::setprecision(4);
  if (most > 5 || most < 0) return {std::pow(10.0, most - 1), 7};
  return {1, most == 0 ? 7 : most + 6};
}

/// Returns the shortest text that reads as this number; powers from 16 on and below -4 have exponents.
inline std::string shortest(double v) {
  char text[64];
  const double size = std::abs(v);
  const auto form =
      size != 0 && (size >= 1e16 || size < 1e-4) ? std::chars_format::scientific : std::chars_format::fixed;
  return {text, std::isfinite(v) ? std::to_chars(text, text + sizeof text, v, form).ptr
                                 : std::to_chars(text, text + sizeof text, v).ptr};
}

inline void print_scale(std::ostream& to, double scale) { to << shortest(scale) << " *" << '\n'; }

/// Prints a matrix of doubles, as many columns in a block as fit into the line. As in libtorch the indentation is
/// behind what stands before the rows, and after each row but the last: the first row of a matrix has none.
inline void print_matrix(std::ostream& to, const Tensor& m, int64_t line, int64_t indent) {
  const Columns form = columns_for(to, m);
  const std::string space(size_t(indent), ' ');
  const int64_t rows = m.size(0), columns = m.size(1);
  const double* values = m.const_data_ptr<double>();
  const int64_t block = std::max<int64_t>(1, (line - indent) / (form.width + 1));
  for (int64_t first = 0; first < columns; first += block) {
    const int64_t end = std::min(first + block, columns);
    if (block < columns) {
      if (first != 0) to << '\n';
      to << "Columns " << first + 1 << " to " << end << space;
    }
    if (form.scale != 1) {
      print_scale(to, form.scale);
      to << space;
    }
    for (int64_t r = 0; r < rows; ++r) {
      for (int64_t c = first; c < end; ++c) {
        to << std::setw(form.width) << values[r * columns + c] / form.scale;
        if (c < end - 1) to << ' ';
      }
      to << '\n';
      if (r < rows - 1) to << space << (form.scale != 1 ? " " : "");
    }
  }
}

/// Prints a tensor of three or more dimensions matrix by matrix.
inline void print_matrices(std::ostream& to, const Tensor& t, int64_t line) {
  const int64_t outer = t.dim() - 2;
  std::vector<int64_t> at(size_t(outer), 0);
  for (bool first = true;; first = false) {
    if (!first) to << '\n';
    Tensor m = t;
    to << '(';
    for (int64_t i : at) {
      m = m.select(0, i);
      to << i + 1 << ',';
    }
    to << ".,.) = " << '\n';
    print_matrix(to, m.contiguous(), line, 1);
    int64_t d = 0;
    while (d < outer && ++at[size_t(d)] == t.size(d)) at[size_t(d++)] = 0;
    if (d == outer) return;
  }
}

}  // namespace torch::detail

namespace vesta {

// Templates, so that the library's own form of the same name is no rival.
template <std::same_as<IntList> T>
std::ostream& operator<<(std::ostream& to, const T& values) {
  to << '[';
  for (size_t i = 0; i < values.size(); ++i) to << (i ? ", " : "") << values[i];
  return to << ']';
}
template <std::same_as<IntList> T>
bool operator==(const T& a, const IntList& b) {
  return std::ranges::equal(a, b);
}
template <std::same_as<Device> T>
std::ostream& operator<<(std::ostream& to, const T& device) {
  return to << device.str();
}
template <std::same_as<DeviceType> T>
std::ostream& operator<<(std::ostream& to, const T& type) {
  return to << name(type);
}
template <std::same_as<DType> T>
std::ostream& operator<<(std::ostream& to, const T& type) {
  static constexpr const char* kNames[] = {"bool",
                                           "unsigned char",
                                           "signed char",
                                           "short int",
                                           "int",
                                           "long int",
                                           "c10::Half",
                                           "c10::BFloat16",
                                           "float",
                                           "double",
                                           "c10::complex<float>",
                                           "c10::complex<double>"};  // as libtorch prints what dtype() returns
  return to << kNames[size_t(type)];
}
template <std::same_as<Scalar> T>
std::ostream& operator<<(std::ostream& to, const T& number) {
  if (number.isComplex()) return to << std::complex<double>(number.real(), number.imag());
  if (number.isBoolean()) return to << (number.integer() ? "true" : "false");
  return number.is_integral() ? to << number.integer() : to << number.real();
}

/// Prints a tensor as libtorch does, in lines of `line` characters.
inline std::ostream& print(std::ostream& to, const Tensor& given, int64_t line) {
  if (!given.defined()) return to << "[ Tensor (undefined) ]";
  const torch::detail::SavedFormat saved(to);
  if (given.is_sparse()) return to << "[ " << given.toString() << "{}\n" << repr(given) << " ]";
  if (given.is_complex()) {  // real and imaginary parts have no columns
    return to << repr(given) << "\n[ " << given.toString() << torch::IntArrayRef(given.sizes()) << " ]";
  }
  const Tensor t = given.detach().to(DType::float64).to(Device()).contiguous();
  if (t.dim() == 0) {
    to << torch::detail::shortest(t.item<double>()) << '\n';
  } else if (t.numel() > 0 && t.dim() == 1) {
    const torch::detail::Columns form = torch::detail::columns_for(to, t);
    if (form.scale != 1) torch::detail::print_scale(to, form.scale);
    for (int64_t i = 0; i < t.numel(); ++i) {
      to << std::setw(form.width) << t.const_data_ptr<double>()[i] / form.scale << '\n';
    }
  } else if (t.numel() > 0 && t.dim() == 2) {
    torch::detail::print_matrix(to, t, line, 0);
  } else if (t.numel() > 0) {
    torch::detail::print_matrices(to, t, line);
  }
  to << "[ " << given.toString() << '{';
  for (int64_t d = 0; d < t.dim(); ++d) to << (d ? "," : "") << t.size(d);
  return to << "} ]";
}

template <std::same_as<Tensor> T>
std::ostream& operator<<(std::ostream& to, const T& t) {
  return print(to, t, 80);
}

inline void Tensor::print() const {
  if (!defined()) std::cerr << "[UndefinedTensor]\n";
  else std::cerr << '[' << toString() << ' ' << sizes() << "]\n";
}

inline std::string_view text_of(torch::MemoryFormat f) {
  static constexpr std::string_view kNames[] = {"contiguous_format", "preserve_format", "channels_last",
                                                "channels_last_3d"};
  return kNames[size_t(f)];
}
inline Tensor Tensor::contiguous(torch::MemoryFormat f) const { return contiguous(text_of(f)); }
inline Tensor Tensor::clone(torch::MemoryFormat f) const { return clone(text_of(f)); }
inline bool Tensor::is_contiguous(torch::MemoryFormat f) const {
  if (f == torch::MemoryFormat::Contiguous) return is_contiguous();
  return contiguous(f).is_same(*this);
}
inline Tensor Tensor::alias() const { return view(sizes()); }

}  // namespace vesta

namespace torch {

using vesta::print;
template <class T>
std::ostream& operator<<(std::ostream& to, const Values<T>& values) {
  to << '[';
  for (size_t i = 0; i < values.size(); ++i) to << (i ? ", " : "") << values[i];
  return to << ']';
}
inline std::ostream& operator<<(std::ostream& to, const TensorOptions& o) {
  return to << "TensorOptions(dtype=" << o.dtype() << ", device=" << o.device()
            << ", requires_grad=" << (o.requires_grad() ? "true" : "false") << ')';
}
inline std::ostream& operator<<(std::ostream& to, MemoryFormat f) {
  static constexpr const char* kNames[] = {"Contiguous", "Preserve", "ChannelsLast", "ChannelsLast3d"};
  return to << kNames[size_t(f)];
}
inline std::ostream& operator<<(std::ostream& to, Layout l) { return to << (l == kSparse ? "Sparse" : "Strided"); }

}  // namespace torch

namespace std {

/// Prints a vector as libtorch does: up to 100 of its values. Only here is it found for vectors of numbers.
template <class T>
std::ostream& operator<<(std::ostream& to, const std::vector<T>& values) {
  size_t i = 0;
  for (const auto& v : values) {
    if (i == 100) break;
    to << (i++ ? " " : "") << v;
  }
  return to << (values.size() > 100 ? " ..." : "");
}

}  // namespace std
