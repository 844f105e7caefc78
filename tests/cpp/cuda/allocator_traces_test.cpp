// Replayed training steps: after three steps of warm-up no driver call is made, and little memory is reserved in vain.
#include "allocator_rig.h"

#include <catch2/catch.hpp>

#include <functional>
#include <random>

using namespace sim;

namespace {

/// A replay of the allocations of training steps, with the memory that stays alive between them.
class Trainer {
 public:
  explicit Trainer(const Options& options = {}) : rig({.memory = 64 * kGiB}, options) {}
  ~Trainer() {
    for (Held& h : kept_) rig.put(h);
  }

  void keep(size_t n) { kept_.push_back(rig.get(n)); }
  Held get(size_t n, Device::Stream s = 0) {
    Held h = rig.get(n, s);
    rig.use(h, s);
    return h;
  }

  /// Runs a GPT's forward and backward pass and its optimizer for `tokens`, in 16-bit floats.
  void gpt_step(size_t tokens, size_t layers = 12, size_t width = 768) {
    std::vector<Held> saved;
    const size_t x = tokens * width * 2;
    saved.push_back(get(tokens * 8));
    for (size_t l = 0; l < layers; ++l) {
      for (size_t n : {x, tokens * 4, tokens * 4, 3 * x, x, tokens * 12 * 4}) saved.push_back(get(n));
      Held projected = get(x);
      for (size_t n : {x, tokens * 4, tokens * 4, 4 * x, 4 * x}) saved.push_back(get(n));
      rig.put(projected);
      saved.push_back(get(x));
    }
    saved.push_back(get(tokens * 50304 * 2));
    std::vector<Held> gradients;
    Held flow = get(x);
    while (!saved.empty()) {
      Held wide = get(saved.back().block->requested), workspace = get(40000);
      if (saved.size() % 3 == 0) gradients.push_back(get(width * width * 4 * 4));
      rig.put(saved.back());
      saved.pop_back();
      rig.put(workspace);
      Held next = get(x);
      rig.put(flow);
      flow = next;
      rig.put(wide);
    }
    rig.put(flow);
    for (Held& g : gradients) rig.put(g);
  }

  void gpt_state() {
    for (int copies = 0; copies < 3; ++copies)  // parameters and two moments
      for (int i = 0; i < 48; ++i) keep(i % 4 == 0 ? 768 * 4 : 768 * 768 * 4 * 4);
  }

  /// Runs three steps, and `steps` more; checks their driver calls, and the memory reserved in vain.
  void measure(const std::function<void(int)>& step, int steps, double most) {
    for (int i = 0; i < 3; ++i) step(i);
    const int64_t memory_calls = rig.device.memory_calls(), calls = rig.device.calls();
    for (int i = 3; i < 3 + steps; ++i) step(i);
    calls_ = rig.device.calls() - calls;
    memory_calls_ = rig.device.memory_calls() - memory_calls;
    ratio_ = double(rig.peak(StatType::reserved_bytes)) / double(rig.peak(StatType::allocated_bytes));
    INFO("reserved / allocated " << ratio_);
    CHECK(ratio_ <= most);
    CHECK(rig.cache.stats().counts.num_alloc_retries == 0);
    rig.cache.check();
    REQUIRE(rig.trouble() == "");
  }
  int64_t calls() const { return calls_; }
  int64_t memory_calls() const { return memory_calls_; }

  Rig rig;

 private:
  std::vector<Held> kept_;
  int64_t calls_ = 0, memory_calls_ = 0;
  double ratio_ = 0;
};

}  // namespace

TEST_CASE("a GPT of fixed shapes", "[cuda][allocator][a3]") {
  Trainer t;
  t.gpt_state();
  t.measure([&](int) { t.gpt_step(size_t(12) * 1024); }, 20, 1.10);
  CHECK(t.calls() == 0);
}

TEST_CASE("a small GPT of fixed shapes", "[cuda][allocator][a3]") {
  Trainer t;
  for (int i = 0; i < 60; ++i) t.keep(i % 4 == 0 ? 384 * 4 : 384 * 384 * 4 * 4);
  t.measure([&](int) { t.gpt_step(size_t(64) * 256, 6, 384); }, 20, 1.10);
  CHECK(t.calls() == 0);
}

TEST_CASE("a GPT of variable length", "[cuda][allocator][a3]") {
  Trainer t;
  t.gpt_state();
  std::mt19937 random(GENERATE(1u, 2u, 3u, 4u));
  t.measure([&](int) { t.gpt_step(12 * (512 + random() % 9 * 64)); }, 40, 1.15);
}

TEST_CASE("a batch of N, now and then of N - 1 and N + 1", "[cuda][allocator][a3]") {
  Trainer t;
  t.gpt_state();
  t.measure([&](int i) { t.gpt_step(size_t(16 + (i % 3) - 1) * 512); }, 30, 1.15);
  CHECK(t.calls() == 0);
}

TEST_CASE("gradients reduced on a second stream", "[cuda][allocator][a3]") {
  Trainer t;
  t.gpt_state();
  const auto comm = t.rig.device.stream();
  t.measure(
      [&](int) {
        std::vector<Held> buckets;
        for (int i = 0; i < 8; ++i) {
          t.gpt_step(4 * 1024, 2);
          Held bucket = t.get(25 * kMiB, 0);
          t.rig.use(bucket, comm, 50);
          Held scratch = t.get(6 * kMiB, comm);
          t.rig.put(scratch);
          t.rig.put(bucket);  // while the other stream works on it
        }
        for (Held& b : buckets) t.rig.put(b);
      },
      10, 1.15);
  CHECK(t.memory_calls() == 0);  // events are recorded and waited for, no more
}

TEST_CASE("the traces on expandable segments", "[cuda][allocator][a3]") {
  Options options;
  options.expandable = true;
  Trainer fixed(options);
  fixed.gpt_state();
  fixed.measure([&](int) { fixed.gpt_step(size_t(12) * 1024); }, 20, 1.10);
  CHECK(fixed.calls() == 0);
  Trainer varied(options);
  varied.gpt_state();
  std::mt19937 random(7);
  varied.measure([&](int i) { varied.gpt_step(12 * (i == 0 ? 1024 : 512 + random() % 9 * 64)); }, 40, 1.15);
}
