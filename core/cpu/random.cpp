// Drivers of random ops: a stream per call, element numbers in row-major order, chunks for the threads.
#include <vesta/core/cpu/random.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include <vesta/core/base/philox.h>
#include <vesta/core/cpu/isa.h>
#include <vesta/core/cpu/parallel.h>
#include <vesta/core/cpu/register.h>
#include <vesta/core/cpu/tensor_memory.h>
#include <vesta/core/ops/copy_values.h>
#include <vesta/core/ops/kernel_checks.h>
#include <vesta/core/ops/destination.h>
#include <vesta/core/ops/random.h>
#include <vesta/core/ops/rejection.h>

VESTA_DECLARE_ON_ISA(void register_random(vesta::cpu::RandomKernels (&table)[vesta::kNumDTypes]))

namespace vesta::cpu {
namespace {

RandomKernels random_kernels[kNumDTypes];

constexpr int64_t kDrawGrain = 16384;  // elements a thread takes at a time; a multiple of a block's four

using Kernel = void (*)(const RandomRun&);

/// Fills n contiguous elements of `item` bytes.
void run(Kernel kernel, RandomRun r, int64_t n, int64_t item, char* out, const char* in = nullptr,
         bool* mask = nullptr) {
  parallel_for(n, kDrawGrain, [&](int64_t begin, int64_t end) {
    RandomRun part = r;
    part.first = begin, part.n = end - begin;
    part.out = out + begin * item;
    part.in = in ? in + begin * item : nullptr;
    part.mask = mask ? mask + begin : nullptr;
    kernel(part);
  });
}

Tensor uniform_(const Tensor& t, double from, double to, Generator* generator) {
  check_uniform(t, from, to);
  RandomRun r{};
  r.a = from, r.b = to;
  DType real = real_type(t.dtype());  // a complex number is two real ones
  r.below = from == to ? from : largest_below(real, to);
  return fill_at_random(t, "uniform_", [&](const Tensor& c) {
    r.stream = next_stream(generator, Device(), "uniform_");
    int64_t n = c.numel() * (c.element_size() / itemsize(real));
    run(random_kernels[int(real)].uniform, r, n, itemsize(real), c.impl()->data());
  });
}

/// Adds a mean to the real parts of complex numbers.
void add_mean(const Tensor& t, double mean) {
  visit<kComplexes>(t.dtype(), [&]<class T>() {
    T* p = reinterpret_cast<T*>(t.impl()->data());
    for (int64_t i = 0; i < t.numel(); ++i) p[i] += typename T::value_type(mean);
  });
}

Tensor normal_(const Tensor& t, double mean, double std, Generator* generator) {
  check_normal(t, std);
  bool complex = t.is_complex();
  DType real = real_type(t.dtype());
  RandomRun r{};
  r.a = complex ? 0 : mean, r.b = complex ? std * std::sqrt(0.5) : std;
  return fill_at_random(t, "normal_", [&](const Tensor& c) {
    r.stream = next_stream(generator, Device(), "normal_");
    int64_t n = complex ? 2 * c.numel() : c.numel();
    run(random_kernels[int(real)].normal, r, n, itemsize(real), c.impl()->data());
    if (complex && mean != 0) add_mean(c, mean);
  });
}

/// Fills elements of c by f(element's number, its draws), each on its own.
template <class T, class F>
void draw_each(const Tensor& c, const char* op, Generator* generator, F f) {
  const RandomStream s = next_stream(generator, Device(), op);
  T* const to = c.data_ptr<T>();
  parallel_for(c.numel(), kDrawGrain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) to[i] = T(f(i, Draws(s.seed, s.offset, uint64_t(i))));
  });
}

Tensor truncated_normal_(const Tensor& t, double mean, double std, double a, double b, Generator* generator) {
  check_truncated_normal(t, mean, std, a, b);
  const TruncatedNormal law(mean, std, a, b);
  return fill_at_random(t, "trunc_normal_", [&](const Tensor& c) {
    visit<kFloats>(c.dtype(), [&]<class T>() {
      draw_each<T>(c, "trunc_normal_", generator,
                   [&](int64_t, Draws draws) { return law(draws, [](double x) { return double(T(x)); }); });
    });
  });
}

Tensor poisson(const Tensor& input, Generator* generator) {
  const Tensor rates = contiguous_values(input);
  Tensor out = empty_tensor(input.sizes(), input.dtype());
  if (input.numel() == 0) return out;
  visit<kFloats>(input.dtype(), [&]<class T>() {
    const T* const rate = rates.data_ptr<T>();
    for (int64_t i = 0; i < rates.numel(); ++i) {
      VESTA_CHECK(double(rate[i]) >= 0 && std::isfinite(double(rate[i])), runtime, kNotRates);
    }
    draw_each<T>(out, "poisson", generator,
                 [&](int64_t i, Draws draws) { return draw_poisson(double(rate[i]), draws); });
  });
  return out;
}

Tensor random_(const Tensor& t, MaybeInt from, MaybeInt to, Generator* generator) {
  IntegerRange range = integer_range(t, from, to);
  RandomRun r{};
  r.from = range.from, r.range = range.range;
  return fill_at_random(t, "random_", [&](const Tensor& c) {
    r.stream = next_stream(generator, Device(), "random_");
    run(random_kernels[int(c.dtype())].integers, r, c.numel(), c.element_size(), c.impl()->data());
  });
}

Tensor bernoulli_(const Tensor& t, double p, Generator* generator) {
  check_bernoulli_(t, p);
  RandomRun r{};
  r.a = p;
  return fill_at_random(t, "bernoulli_", [&](const Tensor& c) {
    r.stream = next_stream(generator, Device(), "bernoulli_");
    if (p == 0) return fill_values(c, 0, "bernoulli_");  // the kernel takes positive probabilities
    run(random_kernels[int(c.dtype())].bernoulli, r, c.numel(), c.element_size(), c.impl()->data());
  });
}

Tensor contiguous_copy(const Tensor& t) {
  if (t.is_contiguous()) return t;
  Tensor r = empty_tensor(t.sizes(), t.dtype());
  copy_values(r, t);
  return r;
}

Tensor bernoulli(const Tensor& p, Generator* generator) {
  check_bernoulli(p);
  Tensor probabilities = contiguous_copy(p);
  visit<kFloats>(p.dtype(), [&]<class T>() {
    const T* v = elements<T>(probabilities);
    for (int64_t i = 0; i < p.numel(); ++i) check_probability(double(compute_t<T>(v[i])), "bernoulli");
  });
  Tensor out = result_tensor(p.sizes(), p.dtype());
  RandomRun r{};
  r.stream = next_stream(generator, Device(), "bernoulli");
  run(random_kernels[int(p.dtype())].bernoulli_of, r, p.numel(), p.element_size(), out.impl()->data(),
      probabilities.impl()->data());
  return out;
}

TensorPair dropout_kernel(const Tensor& input, double p, bool train) {
  check_native_dropout(input, p);
  if (input.is_complex()) return ops::native_dropout.body()(input, p, train);
  if (!input.is_contiguous()) {  // draws go by the number of an element, whatever the layout
    const auto [values, kept] = dropout_kernel(contiguous_copy(input), p, train);
    Tensor out = empty_preserving(input, input.dtype(), Device()),
           mask = empty_preserving(input, DType::bool_, Device());
    copy_values(out, values);
    copy_values(mask, kept);
    return {out, mask};
  }
  Tensor out = empty_tensor(input.sizes(), input.dtype()), mask = empty_tensor(input.sizes(), DType::bool_);
  if (!train) {
    copy_values(out, input);
    fill_values(mask, true, "native_dropout");
    return {out, mask};
  }
  Tensor in = contiguous_copy(input);
  RandomRun r{};
  r.stream = next_stream(nullptr, Device(), "native_dropout");
  if (p == 1) {  // the kernel takes positive probabilities
    fill_values(out, 0, "native_dropout");
    fill_values(mask, false, "native_dropout");
    return {out, mask};
  }
  r.a = 1 - p, r.b = 1 / (1 - p);
  run(random_kernels[int(input.dtype())].dropout, r, input.numel(), input.element_size(), out.impl()->data(),
      in.impl()->data(), reinterpret_cast<bool*>(mask.impl()->data()));
  return {out, mask};
}

struct Card {
  uint64_t key;
  int64_t number;
};

/// Sorts cards by their random keys, equal keys by number, into `to`: first into boxes of a few cards by the leading
/// bits, then within each box.
void sort_cards(const Card* from, Card* to, int64_t n) {
  int bits = std::clamp(int(std::bit_width(uint64_t(n))) - 3, 1, 22);
  std::vector<int64_t> next((size_t(1) << bits) + 1);
  for (int64_t i = 0; i < n; ++i) ++next[size_t(from[i].key >> (64 - bits)) + 1];
  for (size_t box = 1; box < next.size(); ++box) next[box] += next[box - 1];
  for (int64_t i = 0; i < n; ++i) to[next[size_t(from[i].key >> (64 - bits))]++] = from[i];
  int64_t begin = 0;
  for (size_t box = 0; box + 1 < next.size(); ++box) {  // next[box] is the end of box by now
    for (int64_t i = begin + 1; i < next[box]; ++i) {
      Card card = to[i];
      int64_t at = i;
      for (; at > begin && to[at - 1].key > card.key; --at) to[at] = to[at - 1];
      to[at] = card;
    }
    begin = next[box];
  }
}

Tensor randperm(int64_t n, Generator* generator, MaybeDType dtype, MaybeDevice) {
  DType d = check_randperm(n, dtype);
  Tensor memory = empty_tensor({{2, n, 2}}, DType::int64), order = result_tensor({{n}}, DType::int64);
  auto* cards = reinterpret_cast<Card*>(memory.impl()->data());
  auto* p = elements<int64_t>(order);
  RandomStream s = next_stream(generator, Device(), "randperm");
  parallel_for(n, kDrawGrain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) cards[i] = {random_bits64(s.seed, s.offset, uint64_t(i)), i};
  });
  sort_cards(cards, cards + n, n);
  for (int64_t i = 0; i < n; ++i) p[i] = cards[n + i].number;
  if (d == DType::int64) return order;
  Tensor r = result_tensor({{n}}, d);
  copy_values(r, order);
  return r;
}

}  // namespace

void register_random() {
  VESTA_ON_ISA(register_random, random_kernels);
  ops::uniform_.set_kernel(DeviceType::cpu, &uniform_);
  ops::normal_.set_kernel(DeviceType::cpu, &normal_);
  ops::_truncated_normal_.set_kernel(DeviceType::cpu, &truncated_normal_);
  ops::_poisson.set_kernel(DeviceType::cpu, &poisson);
  ops::_random_.set_kernel(DeviceType::cpu, &random_);
  ops::bernoulli_.set_kernel(DeviceType::cpu, &bernoulli_);
  ops::bernoulli.set_kernel(DeviceType::cpu, &bernoulli);
  ops::native_dropout.set_kernel(DeviceType::cpu, &dropout_kernel);
  ops::randperm.set_kernel(DeviceType::cpu, &randperm);
}

}  // namespace vesta::cpu
