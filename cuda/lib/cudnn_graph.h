// cuDNN's graphs: tensors and operations become a plan, which runs on pointers. A thin layer over the library's
// descriptors; it does not depend on our tensors.
//
//   Graph g;
//   g.convolution(Direction::forward, g.tensor(1, x), g.tensor(2, w), g.tensor(3, y), attributes);
//   Plan plan = g.build(Target::of_device(handle), choice);
//   plan.run(handle, {{1, px}, {2, pw}, {3, py}}, workspace);
#pragma once
#include <initializer_list>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <vesta/core/base/macros.h>
#include <vesta/core/dtype.h>
#include <vesta/cuda/lib/cudnn_abi.h>
#include <vesta/cuda/lib/library.h>

namespace vesta::cuda::cudnn {

/// A call that the library refused, with the library's own reason.
class Refused : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// The library, opened on first use.
struct VESTA_API Loaded {
  Library library{{"cuDNN", "cudnn", {"libcudnn.so.9", "libcudnn.so"}}};
  Functions f{};
  Loaded();
  static Loaded& get();
};

/// Raises Refused for a status that is not success, with the call's name and the library's message.
VESTA_API void check(Status status, const char* call);

/// An owner of one descriptor.
class VESTA_API Descriptor {
 public:
  Descriptor() = default;
  explicit Descriptor(Kind kind);
  ~Descriptor();
  Descriptor(Descriptor&& d) noexcept : raw_(std::exchange(d.raw_, nullptr)) {}
  Descriptor& operator=(Descriptor&& d) noexcept {
    std::swap(raw_, d.raw_);
    return *this;
  }
  RawDescriptor raw() const { return raw_; }
  explicit operator bool() const { return raw_; }

  /// Sets an attribute to values of the type that `type` names.
  template <class T>
  void set(Attribute a, Type type, std::span<const T> values) {
    set_raw(a, type, int64_t(values.size()), values.data());
  }
  template <class T>
  void set_one(Attribute a, Type type, const T& value) {
    set_raw(a, type, 1, &value);
  }
  void set_numbers(Attribute a, const std::vector<int64_t>& values) {
    set<int64_t>(a, type_int64, std::span<const int64_t>(values));
  }
  void set_descriptor(Attribute a, const Descriptor& d) { set_one<RawDescriptor>(a, type_descriptor, d.raw_); }
  void finalize();
  /// Reads at most `wanted` values; returns how many there are.
  int64_t get(Attribute a, Type type, int64_t wanted, void* to) const;

 private:
  void set_raw(Attribute a, Type type, int64_t count, const void* values);
  RawDescriptor raw_ = nullptr;
};

/// The device for which a plan is made: that of a handle, or one described by a JSON string, which need not exist (for
/// tests, and for plans made ahead).
class VESTA_API Target {
 public:
  static Target of_handle(Handle handle);
  static Target of_json(const std::string& json);
  /// Sets the target of a heuristic or a plan.
  void put(Descriptor& d, Attribute as_handle, Attribute as_device) const;
  /// Sets the handle of a graph, if there is one.
  void put_handle(Descriptor& d, Attribute as_handle) const;

 private:
  Handle handle_ = nullptr;
  Descriptor device_;
};

/// The algorithms that a plan may use.
struct Choice {
  int64_t workspace_limit = int64_t(256) << 20;
  bool deterministic = true;
  bool tensor_cores = true;  // false: none that round the factors of float32 products
};

enum class Direction : uint8_t { forward, input_gradient, weight_gradient };

/// A convolution's numbers per spatial dimension.
struct ConvAttributes {
  std::vector<int64_t> padding, stride, dilation;
  bool wide = false;  // sums in double
};

/// A chosen algorithm, ready to run.
class VESTA_API Plan {
 public:
  int64_t workspace() const { return workspace_; }
  /// Returns whether the engine guarantees the same bits from run to run.
  bool is_deterministic() const;
  /// Queues the plan on the handle's stream; pointers are given by the tensors' numbers.
  void run(Handle handle, std::span<const std::pair<int64_t, void*>> pointers, void* workspace) const;

 private:
  friend class Graph;
  Descriptor plan_, config_;
  int64_t workspace_ = 0;
};

/// A graph of tensors and operations. Tensors that have memory get positive numbers below 1000.
class VESTA_API Graph {
 public:
  /// Adds a tensor by number, sizes and strides; returns its index. Pointers are aligned to 16 bytes.
  int tensor(int64_t id, const std::vector<int64_t>& sizes, const std::vector<int64_t>& strides, DType dtype);
  /// Adds a convolution. x, w, y are indices; for a gradient, x or w is the result and y the incoming gradient.
  void convolution(Direction direction, int x, int w, int y, const ConvAttributes& attributes);
  /// Adds a dense tensor without memory, from one operation to the next. Its type is that of its elements.
  int between(const std::vector<int64_t>& sizes, DType dtype = DType::float32);
  int between(const std::vector<int64_t>& sizes, const std::vector<int64_t>& strides, DType dtype);
  /// Adds one float of `dims` dimensions, which the host gives when the plan runs: a pointer to it.
  int number(int64_t id, size_t dims);
  // Operations on tensors given by their indices; each returns the index of its result. Sizes of 1 broadcast.
  /// Adds y = x (op) b, computed in float, for integers in int32 and for comparisons as a boolean.
  int pointwise(Pointwise op, int x, int b, int y);
  /// Adds y = op(x).
  int pointwise(Pointwise op, int x, int y);
  /// Adds y, the index of each element of x along a dimension.
  int index(int x, int64_t dim, int y);
  /// Adds y = t ? x : b.
  int select(int t, int x, int b, int y);
  /// Adds c = a @ b over the last two dimensions; heads of b may serve several of a.
  int matmul(int a, int b, int c);
  /// Adds a reduction to the sizes of y.
  int reduce(Reduction op, int x, int y);
  /// Adds y, the elements of x in other dimensions, as its strides say.
  int reshape(int x, int y);

  /// Chooses the first algorithm of heuristic A, then of the fallback list, that the choice allows and that builds.
  /// Raises Refused if there is none.
  Plan build(const Target& target, const Choice& choice);

 private:
  struct OfOperation {
    Attribute name;
    int place;
  };
  int add_tensor(int64_t id, const std::vector<int64_t>& sizes, const std::vector<int64_t>& strides, DType dtype,
                 Attribute kind);
  int add_pointwise(Pointwise op, int64_t axis, int compute_type, std::initializer_list<OfOperation> operands, int y);
  void add_operation(Kind kind, std::initializer_list<OfOperation> operands, Attribute what, Descriptor attributes);
  std::vector<Descriptor> tensors_, attributes_, operations_;
  int64_t between_ = 0;  // the number of tensors without memory
};

}  // namespace vesta::cuda::cudnn
