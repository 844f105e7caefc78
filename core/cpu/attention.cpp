// Attention whose matrix of scores is never written: a tour. A task is a block of queries of one head (forward), or
// all heads of queries that share keys (backward; where those are few, threads share one). Its scores, one row per
// query, lie in L2: products with the keys that some query of the block may see, softmax row by row, products with the
// values. The gradient computes the scores again and adds to the gradients of keys and values block after block, so
// that the order of sums is that of the queries whatever the number of threads.
#include <algorithm>
#include <cmath>
#include <limits>

#include <vesta/core/cpu/allocator.h>
#include <vesta/core/cpu/gemm.h>
#include <vesta/core/cpu/parallel.h>
#include <vesta/core/cpu/register.h>
#include <vesta/core/cpu/rounding.h>
#include <vesta/core/cpu/row_kernels.h>
#include <vesta/core/cpu/tensor_memory.h>
#include <vesta/core/ops/attention.h>
#include <vesta/core/ops/checks.h>
#include <vesta/core/ops/copy_values.h>
#include <vesta/core/ops/factory.h>
#include <vesta/core/ops/view.h>

namespace vesta::cpu {
namespace {

constexpr int64_t kBlockScores = 64 * 1024;  // 256 KiB of floats lie in L2
constexpr int64_t kFewestQueries = 16, kMostQueries = 64;
constexpr int64_t kMostTogether = 128;  // where a block reads all keys, which are packed for it (compare_torch.py)
constexpr int64_t kPieceOfKeys = 64;  // whose gradients one thread sums

/// One [N, H, rows, columns] operand of any strides.
template <class T>
struct Heads {
  T* data;
  int64_t batch, head, row, column;
  explicit Heads(const Tensor& t)
      : data(reinterpret_cast<T*>(t.impl()->data())),
        batch(t.strides()[0]),
        head(t.strides()[1]),
        row(t.strides()[2]),
        column(t.strides()[3]) {}
  T* at(int64_t n, int64_t h, int64_t i = 0) const { return data + n * batch + h * head + i * row; }
};

// Writes f(j) for each of n elements of a row, which f may read, in blocks of a fixed length: the compiler makes
// vectors of them.
template <class T, class F>
void write_row(T* to, int64_t n, const F& f) {
  constexpr int64_t kBlock = 16;
  int64_t j = 0;
  for (; j + kBlock <= n; j += kBlock) {
    T values[kBlock];
    for (int64_t i = 0; i < kBlock; ++i) values[i] = f(j + i);
    std::copy_n(values, kBlock, to + j);
  }
  for (; j < n; ++j) to[j] = f(j);
}

// Writes n numbers, `step` apart, times a factor.
template <class T>
void scale_row(const T* from, int64_t step, T factor, T* to, int64_t n) {
  if (step == 1) return write_row(to, n, [=](int64_t j) { return from[j] * factor; });
  for (int64_t j = 0; j < n; ++j) to[j] = from[j * step] * factor;
}

template <class T>
struct Attention {
  const Heads<T> query, key, value;
  const Tensor mask;
  const AttentionCall call;
  const int64_t batch, heads, shared;  // shared: heads of keys and values
  const int64_t queries, keys, width, value_width;
  const RowKernels& rows = row_kernels(std::is_same_v<T, float> ? DType::float32 : DType::float64);
  const Elem elem = std::is_same_v<T, float> ? Elem::f32 : Elem::f64;
  const int64_t block;  // queries of a block

  Attention(const Tensor& q, const Tensor& k, const Tensor& v, MaybeTensor seen, const AttentionCall& c, int64_t most)
      : query(q),
        key(k),
        value(v),
        mask(seen.defined() ? Tensor(*seen) : Tensor()),
        call(c),
        batch(q.size(0)),
        heads(q.size(1)),
        shared(k.size(1)),
        queries(q.size(2)),
        keys(k.size(2)),
        width(q.size(3)),
        value_width(v.size(3)),
        block(std::clamp(kBlockScores / keys, kFewestQueries, most)) {}

  int64_t blocks() const { return (queries + block - 1) / block; }
  int64_t head_of_keys(int64_t h) const { return h / (heads / shared); }

  /// A block of queries of one head.
  struct Block {
    int64_t n, h, first, count;
    int64_t keys;  // those that some query may see
  };
  Block at(int64_t n, int64_t h, int64_t i) const {
    const int64_t first = i * block, count = std::min(block, queries - first);
    return {n, h, first, count, call.is_causal ? std::min(keys, first + count) : keys};
  }
  int64_t seen_by(const Block& b, int64_t i) const { return call.is_causal ? std::min(b.keys, b.first + i + 1) : keys; }

  /// Computes the scores of a block, [count, b.keys], with the mask; `scaled` has room for the block's queries.
  void score(const Block& b, T* scaled, T* scores) const {
    const T factor = T(call.scale);
    for (int64_t i = 0; i < b.count; ++i) {
      scale_row(query.at(b.n, b.h, b.first + i), query.column, factor, scaled + i * width, width);
    }
    gemm(elem, {.m = b.count,
                .n = b.keys,
                .k = width,
                .a = scaled,
                .a_row = width,
                .a_col = 1,
                .b = key.at(b.n, head_of_keys(b.h)),
                .b_row = key.column,
                .b_col = key.row,
                .c = scores,
                .c_row = b.keys});
    if (!mask.defined()) return;
    const char* const base = mask.impl()->data();
    const int64_t size = itemsize(mask.dtype()), step = mask.strides()[3];
    for (int64_t i = 0; i < b.count; ++i) {
      T* const row = scores + i * b.keys;
      const char* const from =
          base + (b.n * mask.strides()[0] + b.h * mask.strides()[1] + (b.first + i) * mask.strides()[2]) * size;
      if (mask.dtype() == DType::bool_) {
        for (int64_t j = 0; j < b.keys; ++j) {
          if (!from[j * step]) row[j] = -std::numeric_limits<T>::infinity();
        }
      } else if (mask.dtype() == DType::float32) {
        for (int64_t j = 0; j < b.keys; ++j) row[j] += T(reinterpret_cast<const float*>(from)[j * step]);
      } else {
        for (int64_t j = 0; j < b.keys; ++j) row[j] += reinterpret_cast<const T*>(from)[j * step];
      }
    }
  }

  /// Turns n scores into weights exp(score - top) / sum.
  void weigh(T* row, ExpSum of, int64_t n) const {
    char* const bytes = reinterpret_cast<char*>(row);
    rows.exp_minus(bytes, of.top, 1 / of.sum, 0, nullptr, bytes, n);
  }

  /// Computes a block of the result and the logarithm of each query's sum; a query that sees nothing gets zeros and
  /// infinity.
  void forward(const Block& b, T* scaled, T* scores, const Heads<T>& out, T* top) const {
    score(b, scaled, scores);
    for (int64_t i = 0; i < b.count; ++i) {
      T* const row = scores + i * b.keys;
      const int64_t n = seen_by(b, i);
      const ExpSum s = rows.weights(reinterpret_cast<char*>(row), n);
      top[i] = s.sum == 0 ? std::numeric_limits<T>::infinity() : T(s.top + std::log(s.sum));
      std::fill(row + n, row + b.keys, T(0));
    }
    gemm(elem, {.m = b.count,
                .n = value_width,
                .k = b.keys,
                .a = scores,
                .a_row = b.keys,
                .a_col = 1,
                .b = value.at(b.n, head_of_keys(b.h)),
                .b_row = value.row,
                .b_col = value.column,
                .c = out.at(b.n, b.h, b.first),
                .c_row = out.row});
  }

  /// Returns how many tasks of so many blocks are worthwhile for a thread.
  int64_t grain(int64_t blocks_of_task) const {
    const int64_t work = block * keys * (width + value_width) * blocks_of_task;
    return std::max<int64_t>(1, kTaskWork / std::max<int64_t>(work, 1));
  }

  void run(const Heads<T>& out, T* top) const {
    const int64_t each = blocks();
    parallel_for(batch * heads * each, grain(1), [&](int64_t begin, int64_t end) {
      const HostArray<T> room(size_t(block * (width + keys)));
      for (int64_t t = begin; t < end; ++t) {
        const Block b = at(t / each / heads, t / each % heads, t % each);
        const int64_t row = (b.n * heads + b.h) * queries + b.first;
        forward(b, room.data(), room.data() + block * width, out, top + row);
      }
    });
  }

  /// Working memory of a block's gradient.
  struct Room {
    T *scaled, *weights, *of_weights, *of_output;
  };

  struct Gradients {
    Heads<T> grad, output;     // of the result, and the result
    Heads<T> of_q, of_k, of_v;
  };

  /// Computes the gradient of a block of queries. Leaves its weights, their gradient and the scaled queries in `r`, for
  /// add_to_keys().
  void differentiate(const Block& b, const Room& r, const Gradients& g, const T* top) const {
    score(b, r.scaled, r.weights);
    for (int64_t i = 0; i < b.count; ++i) {
      T* const row = r.weights + i * b.keys;
      const int64_t n = seen_by(b, i);
      weigh(row, {double(top[i]), 1}, n);
      std::fill(row + n, row + b.keys, T(0));
      scale_row(g.grad.at(b.n, b.h, b.first + i), g.grad.column, T(1), r.of_output + i * value_width, value_width);
    }
    const int64_t k = head_of_keys(b.h);
    gemm(elem, {.m = b.count,
                .n = b.keys,
                .k = value_width,
                .a = r.of_output,
                .a_row = value_width,
                .a_col = 1,
                .b = value.at(b.n, k),
                .b_row = value.column,
                .b_col = value.row,
                .c = r.of_weights,
                .c_row = b.keys});
    for (int64_t i = 0; i < b.count; ++i) {
      const T *const of_out = r.of_output + i * value_width, *const out = g.output.at(b.n, b.h, b.first + i);
      double delta = 0;
      for (int64_t j = 0; j < value_width; ++j) delta += double(of_out[j]) * double(out[j * g.output.column]);
      T* const row = r.of_weights + i * b.keys;
      const T* const weights = r.weights + i * b.keys;
      const T less = T(delta);
      write_row(row, b.keys, [=](int64_t j) { return weights[j] * (row[j] - less); });
    }
    gemm(elem, {.m = b.count,
                .n = width,
                .k = b.keys,
                .a = r.of_weights,
                .a_row = b.keys,
                .a_col = 1,
                .b = key.at(b.n, k),
                .b_row = key.row,
                .b_col = key.column,
                .c = g.of_q.at(b.n, b.h, b.first),
                .c_row = g.of_q.row});
    for (int64_t i = 0; i < b.count; ++i) {
      T* const row = g.of_q.at(b.n, b.h, b.first + i);
      scale_row(row, 1, T(call.scale), row, width);
    }
  }

  /// Adds what a block gives to the gradients of some keys, and of their values.
  void add_to_keys(const Block& b, const Room& r, const Gradients& g, int64_t first, int64_t last) const {
    last = std::min(last, b.keys);
    if (first >= last) return;
    const int64_t k = head_of_keys(b.h);
    gemm(elem, {.m = last - first,
                .n = value_width,
                .k = b.count,
                .a = r.weights + first,
                .a_row = 1,
                .a_col = b.keys,
                .b = r.of_output,
                .b_row = value_width,
                .b_col = 1,
                .c = g.of_v.at(b.n, k, first),
                .c_row = g.of_v.row,
                .accumulate = true});
    // The scaled queries give the gradient of keys with the scale; that of queries got it at its end.
    gemm(elem, {.m = last - first,
                .n = width,
                .k = b.count,
                .a = r.of_weights + first,
                .a_row = 1,
                .a_col = b.keys,
                .b = r.scaled,
                .b_row = width,
                .b_col = 1,
                .c = g.of_k.at(b.n, k, first),
                .c_row = g.of_k.row,
                .accumulate = true});
  }

  void clear_keys(const Gradients& g, int64_t n, int64_t k) const {
    for (int64_t i = 0; i < keys; ++i) {
      std::fill_n(g.of_k.at(n, k, i), width, T(0));
      std::fill_n(g.of_v.at(n, k, i), value_width, T(0));
    }
  }

  int64_t room_size() const { return block * (width + value_width + 2 * keys); }
  Room room_at(T* memory) const {
    return {memory, memory + block * width, memory + block * (width + keys), memory + block * (width + 2 * keys)};
  }

  /// Computes the gradients of one head of keys with all threads: as many blocks as there are threads at a time, then
  /// what they add to each piece of the keys, in the order of the blocks.
  void run_together(const Gradients& g, const T* top, int64_t n, int64_t k) const {
    const int64_t group = heads / shared, all = group * blocks(), wave = std::min<int64_t>(all, num_threads());
    const HostArray<T> memory(size_t(wave * room_size()));
    const auto block_at = [&](int64_t t) { return at(n, k * group + t / blocks(), t % blocks()); };
    const auto room_of = [&](int64_t t) { return room_at(memory.data() + t % wave * room_size()); };
    clear_keys(g, n, k);
    for (int64_t first = 0; first < all; first += wave) {
      const int64_t last = std::min(all, first + wave);
      parallel_for(last - first, 1, [&](int64_t begin, int64_t end) {
        for (int64_t t = first + begin; t < first + end; ++t) {
          const Block b = block_at(t);
          differentiate(b, room_of(t), g, top + (n * heads + b.h) * queries + b.first);
        }
      });
      parallel_for(ceil_div(keys, kPieceOfKeys), 1, [&](int64_t begin, int64_t end) {
        for (int64_t t = first; t < last; ++t) {
          add_to_keys(block_at(t), room_of(t), g, begin * kPieceOfKeys, end * kPieceOfKeys);
        }
      });
    }
  }

  void run_backward(const Gradients& g, const T* top) const {
    const int64_t group = heads / shared;
    if (batch * shared < num_threads() && group * blocks() > 1 && grain(1) == 1) {
      for (int64_t t = 0; t < batch * shared; ++t) run_together(g, top, t / shared, t % shared);
      return;
    }
    parallel_for(batch * shared, grain(group * blocks()), [&](int64_t begin, int64_t end) {
      const HostArray<T> memory(static_cast<size_t>(room_size()));
      const Room r = room_at(memory.data());
      for (int64_t t = begin; t < end; ++t) {
        const int64_t n = t / shared, k = t % shared;
        clear_keys(g, n, k);
        for (int64_t h = k * group; h < (k + 1) * group; ++h) {
          for (int64_t i = 0; i < blocks(); ++i) {
            const Block b = at(n, h, i);
            differentiate(b, r, g, top + (n * heads + h) * queries + b.first);
            add_to_keys(b, r, g, 0, keys);
          }
        }
      }
    });
  }
};

bool has_kernel(const Tensor& query, double dropout_p) {
  return dropout_p == 0 && (query.dtype() == DType::float32 || query.dtype() == DType::float64);
}

TensorPair attention_kernel(const Tensor& query, const Tensor& key, const Tensor& value, MaybeTensor mask,
                            double dropout_p, int64_t seed, int64_t offset, bool is_causal, double scale) {
  check_fused_attention(query, key, value, mask);
  if (!has_kernel(query, dropout_p)) {
    return _fused_attention_composite(query, key, value, mask, dropout_p, seed, offset, is_causal, scale);
  }
  const Tensor y = empty_heads(query, query.size(1), query.size(2), value.size(3));
  const Tensor top = empty_tensor({{query.size(0), query.size(1), query.size(2)}}, query.dtype());
  visit<kFloats>(query.dtype(), [&]<class T>() {
    if constexpr (std::is_floating_point_v<T>) {
      const int64_t most = is_causal ? kMostQueries : kMostTogether;
      const Attention<T> run(query, key, value, mask, {dropout_p, seed, offset, is_causal, scale}, most);
      run.run(Heads<T>(y), elements<T>(top));
    }
  });
  return {y, top};
}

TensorTriple attention_backward_kernel(const Tensor& grad, const Tensor& query, const Tensor& key, const Tensor& value,
                                       MaybeTensor mask, const Tensor& output, const Tensor& top, double dropout_p,
                                       int64_t seed, int64_t offset, bool is_causal, double scale) {
  check_fused_attention(query, key, value, mask);
  if (!has_kernel(query, dropout_p)) {
    return _fused_attention_backward_composite(grad, query, key, value, mask, output, top, dropout_p, seed, offset,
                                               is_causal, scale);
  }
  const Tensor of_q = empty_heads(query, query.size(1), query.size(2), query.size(3)),
               of_k = empty_heads(key, key.size(1), key.size(2), key.size(3)),
               of_v = empty_heads(value, value.size(1), value.size(2), value.size(3));
  const Tensor logs = contiguous_values(top);
  visit<kFloats>(query.dtype(), [&]<class T>() {
    if constexpr (std::is_floating_point_v<T>) {
      const Attention<T> run(query, key, value, mask, {dropout_p, seed, offset, is_causal, scale}, kMostQueries);
      run.run_backward({Heads<T>(grad), Heads<T>(output), Heads<T>(of_q), Heads<T>(of_k), Heads<T>(of_v)},
                       elements<T>(logs));
    }
  });
  return {of_q, of_k, of_v};
}

}  // namespace

void register_attention() {
  ops::_fused_attention.set_kernel(DeviceType::cpu, attention_kernel);
  ops::_fused_attention_backward.set_kernel(DeviceType::cpu, attention_backward_kernel);
}

}  // namespace vesta::cpu
