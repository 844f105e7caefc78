// The profiler's recorder from C++: what is recorded, how it nests, and what happens at the ends of threads and
// sessions.
#include <atomic>
#include <catch2/catch.hpp>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include <vesta/core/ops/profile.h>
#include <vesta/vesta.h>

using namespace vesta;

namespace {

const profiler::Total* find(const std::vector<profiler::Total>& totals, const std::string& name) {
  for (const auto& t : totals) {
    if (t.name == name) return &t;
  }
  return nullptr;
}

}  // namespace

TEST_CASE("a profile counts calls, times, memory and costs of forward and backward", "[profile]") {
  Tensor x = randn({8, 16}), w = randn({16, 4});
  w.set_requires_grad(true);
  profiler::Profile profile;
  {
    const profiler::Part part(profiler::Kind::part, "step");
    x.matmul(w).sum().backward();
  }
  profile.stop();
  x.matmul(w);  // after the end: not in it
  const auto totals = profile.totals();
  const auto* matmul = find(totals, "matmul");
  REQUIRE(matmul);
  CHECK(matmul->calls == 2);  // forward, and the gradient of w
  CHECK(matmul->cost.operations == 2 * 2.0 * 8 * 16 * 4);
  CHECK(matmul->memory == (8 * 4 + 16 * 4) * 4);
  CHECK(matmul->seconds > 0);
  REQUIRE(find(totals, "MatmulBackward0"));
  const auto* step = find(totals, "step");
  REQUIRE(step);
  CHECK(step->seconds >= matmul->seconds);
  CHECK(step->self_seconds < step->seconds);
  CHECK(profile.table().find("matmul") != std::string::npos);
}

TEST_CASE("a profile has a row for each module of a C++ network, with its backward", "[profile]") {
  struct Net : nn::Module {
    std::shared_ptr<nn::Sequential> body =
        register_module("body", nn::make<nn::Sequential>(std::initializer_list<std::shared_ptr<nn::Module>>{
                                    nn::make<nn::Linear>(8, 16), nn::make<nn::ReLU>()}));
    std::shared_ptr<nn::Linear> head = register_module("head", nn::make<nn::Linear>(16, 4));
    Tensor forward(const Tensor& x) override { return (*head)((*body)(x)); }
  } net;
  const Tensor x = randn({5, 8});
  net(x);
  profiler::Profile profile;
  for (int step = 0; step < 2; ++step) net(x).sum().backward();
  profile.stop();
  std::map<std::string, profiler::LayerTotal> rows;
  for (const auto& row : profile.layers()) rows[row.name] = row;
  REQUIRE(rows.contains("body.0"));
  REQUIRE(rows.contains("head"));
  CHECK(rows.contains("(outside of layers)"));
  CHECK(rows["Net"].calls == 2);
  CHECK(rows["body"].calls == 2);
  CHECK(rows["body.1"].backward_seconds > 0);
  CHECK(rows["head"].calls == 2);
  CHECK(rows["head"].forward_seconds > 0);
  CHECK(rows["head"].backward_seconds > 0);
  // Forward, and the gradients of its input and its weight.
  CHECK(rows["head"].cost.operations >= 2 * 3 * 2.0 * 5 * 16 * 4);
  const std::string text = profile.layer_table();
  CHECK(text.find("body.0") != std::string::npos);
  CHECK(text.find("Could be") != std::string::npos);
}

TEST_CASE("memory is watched while a session asks for it, and freed as ever", "[profile]") {
  const uint64_t outer = profiler::start();
  Tensor before = ones({1 << 16});
  const uint64_t session = profiler::start(true);
  Tensor kept = ones({1 << 14});
  { const Tensor freed = before.exp(); }
  const auto traces = profiler::stop(session);
  profiler::stop(outer);
  int64_t held = 0, existed = 0, count = 0;
  for (const auto& trace : traces) {
    for (const profiler::MemoryEvent& e : trace.memory) {
      held += e.bytes, existed += e.existed ? e.bytes : 0, ++count;
      CHECK(e.block > 0);
      if (!e.existed && e.bytes > 0) CHECK(e.event < trace.events.size());
    }
  }
  CHECK(count == 4);
  CHECK(existed == 4 << 16);
  CHECK(held == (4 << 16) + (4 << 14));
  before = {};
  kept.resize_({3});
  CHECK(kept.numel() == 3);
}

TEST_CASE("an exception closes the event of its op, and profiles may overlap", "[profile]") {
  profiler::Profile outer;
  CHECK_THROWS(ones({2, 3}).matmul(ones({2, 3})));
  profiler::Profile inner;
  ones({2}).exp();
  inner.stop();
  ones({2}).log();
  outer.stop();
  CHECK(find(inner.totals(), "exp"));
  CHECK_FALSE(find(inner.totals(), "matmul"));
  CHECK_FALSE(find(inner.totals(), "log"));
  CHECK(find(outer.totals(), "log"));
  bool failed = false;
  for (const auto& trace : outer.traces()) {
    for (const auto& e : trace.events) {
      CHECK_FALSE(e.open);
      CHECK(e.start <= e.end);
      failed = failed || e.failed;
      if (trace.name_of(e) == "exp") CHECK(e.parent == profiler::Event::kNone);
    }
  }
  CHECK(failed);
}

TEST_CASE("threads come and go while profiles begin and end", "[profile]") {
  std::atomic<bool> stop{false};
  std::vector<std::thread> workers;
  workers.reserve(3);
  for (int i = 0; i < 3; ++i) {
    workers.emplace_back([&] {
      while (!stop) {
        std::thread short_lived([] {
          for (int k = 0; k < 20; ++k) ones({4}).exp().sum();
        });
        short_lived.join();
        ones({4}).mul(ones({4}));
      }
    });
  }
  int64_t calls = 0;
  for (int round = 0; round < 60 || (calls == 0 && round < 100'000); ++round) {  // until the others had a turn
    profiler::Profile profile;
    for (int k = 0; k < 50; ++k) ones({4}).neg();
    if (round % 3 == 0) profile.table();
    profile.stop();
    for (const auto& trace : profile.traces()) {
      for (size_t i = 0; i < trace.events.size(); ++i) {
        const profiler::Event& e = trace.events[i];
        REQUIRE(e.end >= e.start);
        REQUIRE((e.parent == profiler::Event::kNone || e.parent < i));
      }
    }
    const auto totals = profile.totals();
    REQUIRE(find(totals, "neg"));
    CHECK(find(totals, "neg")->calls == 50);
    if (const auto* exp = find(totals, "exp")) calls += exp->calls;
  }
  stop = true;
  for (auto& t : workers) t.join();
  CHECK(calls > 0);
  CHECK_FALSE(profiler::running());
}

TEST_CASE("a profile writes a trace of JSON, and the machine has peaks", "[profile]") {
  profiler::Profile profile;
  ones({4}).exp();
  const std::string path = "profile_test_trace.json";
  profile.export_chrome_trace(path);
  std::ifstream file(path);
  const std::string text((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  std::remove(path.c_str());
  CHECK(text.find("\"name\": \"exp\"") != std::string::npos);
  CHECK(text.find("\"Bytes\": 32") != std::string::npos);
  CHECK(text.find("thread_name") != std::string::npos);
  CHECK_THROWS_WITH(profile.export_chrome_trace("/nowhere/at/all.json"), Catch::Contains("can be written"));
  const profiler::Peaks peaks = profiler::peaks();
  CHECK(peaks.bytes_per_second > 1e8);
  CHECK(peaks.operations_per_second > 1e8);
}
