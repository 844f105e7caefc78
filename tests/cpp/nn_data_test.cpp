// Datasets, samplers and the loader in C++: the same batches for any number of threads, errors, positions in a pass.
#include <vesta/core/ops/ops.h>
#include <vesta/nn/data/dataloader.h>

#include <catch2/catch.hpp>

#include <atomic>
#include <set>
#include <thread>

#include "support.h"

namespace {

using namespace vesta;
using Catch::Matchers::Contains;
using test::message;
using Numbers = std::vector<int64_t>;

Numbers numbers(const Tensor& t) {
  const Tensor flat = t.contiguous().to(DType::int64);
  const int64_t* p = flat.data_ptr<int64_t>();
  return {p, p + flat.numel()};
}

/// A dataset whose samples are the index and two random numbers.
struct Noisy : data::Dataset {
  int64_t count = 23, bad = -1, odd = -1;
  int64_t size() const override { return count; }
  data::Sample get(int64_t index, Generator& random) const override {
    VESTA_CHECK(index != bad, index, "Noisy: there is no sample ", index, ".");
    if (index % 3 == 0) std::this_thread::yield();
    return {full({1}, index), rand({index == odd ? 3 : 2}, &random, DType::float64)};
  }
};

std::vector<Numbers> all(data::DataLoader& loader) {
  std::vector<Numbers> found;
  for (const data::Sample& batch : loader) {
    Numbers one = numbers(batch[0]);
    for (int64_t v : numbers(batch[1] * 1e12)) one.push_back(v);
    found.push_back(one);
  }
  return found;
}

std::shared_ptr<data::TensorDataset> rows(int64_t n) {
  return std::make_shared<data::TensorDataset>(std::vector<Tensor>{arange(2 * n).view({n, 2}), arange(n)});
}

}  // namespace

TEST_CASE("Batches are equal for any number of threads", "[data]") {
  const auto dataset = std::make_shared<Noisy>();
  std::vector<std::vector<Numbers>> expected;
  for (int threads : {0, 1, 2, 3, 7}) {
    manual_seed(4);
    data::DataLoader loader(dataset, {.batch_size = 4, .shuffle = true, .num_workers = threads});
    CHECK(loader.size() == 6);
    const std::vector<std::vector<Numbers>> passes = {all(loader), all(loader)};
    if (!threads) expected = passes;
    CHECK(passes == expected);
  }
  CHECK(expected[0] != expected[1]);
}

TEST_CASE("A pass goes on at any place with another number of threads", "[data]") {
  const auto dataset = std::make_shared<Noisy>();
  manual_seed(9);
  data::DataLoader first(dataset, {.batch_size = 3, .shuffle = true, .num_workers = 2, .drop_last = true});
  std::vector<data::LoaderState> places;
  std::vector<Numbers> batches;
  for (const data::Sample& batch : first) {
    batches.push_back(numbers(batch[0]));
    places.push_back(first.state_dict());
  }
  CHECK(batches.size() == 7);
  CHECK(first.state_dict().finished);
  for (size_t k = 0; k < places.size(); ++k) {
    CHECK(places[k].batches == int64_t(k) + 1);
    data::DataLoader second(dataset, {.batch_size = 3, .shuffle = true, .num_workers = int(k % 4), .drop_last = true});
    second.load_state_dict(places[k]);
    std::vector<Numbers> rest;
    for (const data::Sample& batch : second) rest.push_back(numbers(batch[0]));
    CHECK(rest == std::vector<Numbers>(batches.begin() + int64_t(k) + 1, batches.end()));
  }
}

TEST_CASE("Rows of tensors are looked up in one go", "[data]") {
  data::DataLoader loader(rows(5), {.batch_size = 2, .num_workers = 1});
  std::vector<Numbers> found;
  for (const data::Sample& batch : loader) found.push_back(numbers(batch[0]));
  CHECK(found == std::vector<Numbers>{{0, 1, 2, 3}, {4, 5, 6, 7}, {8, 9}});
  const auto part = std::make_shared<data::Subset>(rows(5), Numbers{4, 0});
  data::DataLoader of_part(part, {.batch_size = 2});
  CHECK(numbers((*of_part.begin())[1]) == Numbers{4, 0});
  const data::ConcatDataset both({rows(2), rows(3)});
  Generator random(0);
  CHECK(both.size() == 5);
  CHECK(both.get(3, random)[1].item<int64_t>() == 1);
  CHECK_THAT(message([&] { both.get(5, random); }), Contains("an index below 5, got 5"));
}

TEST_CASE("An error names its sample, and the pass goes on behind it", "[data]") {
  for (int threads : {0, 2}) {
    auto dataset = std::make_shared<Noisy>();
    dataset->bad = 5;
    data::DataLoader loader(dataset, {.batch_size = 4, .num_workers = threads});
    auto at = loader.begin();
    CHECK_THAT(message([&] { ++at; }),
               Contains("there is no sample 5. In batch 1 of a DataLoader, sample 5 (index 5)"));
    ++at;
    CHECK(numbers((*at)[0]) == Numbers{8, 9, 10, 11});
    dataset = std::make_shared<Noisy>();
    dataset->odd = 2;
    data::DataLoader uneven(dataset, {.batch_size = 4, .num_workers = threads});
    CHECK_THAT(message([&] { uneven.begin(); }),
               Contains("field 1: sample 0 of the batch has shape [2], sample 2 [3]"));
  }
}

TEST_CASE("Threads are told their number, wait no longer than said, and end with the pass", "[data]") {
  std::atomic<int> told{0};
  data::DataLoader loader(rows(8), {.num_workers = 3, .worker_init_fn = [&](int i) { told += 1 << i; }});
  { auto at = loader.begin(); }
  CHECK(told == 7);
  struct Slow : Noisy {
    data::Sample get(int64_t index, Generator& random) const override {
      std::this_thread::sleep_for(std::chrono::milliseconds(300));
      return Noisy::get(index, random);
    }
  };
  data::DataLoader slow(std::make_shared<Slow>(), {.num_workers = 1, .timeout = 0.05});
  CHECK_THAT(message([&] { slow.begin(); }), Contains("timed out after 0.05 seconds, waiting for batch 0"));
  data::DataLoader any(rows(40), {.num_workers = 4, .in_order = false});
  std::multiset<int64_t> found;
  for (const data::Sample& batch : any) found.insert(batch[1].item<int64_t>());
  CHECK(found.size() == 40);
  CHECK(std::set<int64_t>(found.begin(), found.end()).size() == 40);
}

TEST_CASE("Samplers", "[data]") {
  const auto sorted = [](Numbers n) {
    std::sort(n.begin(), n.end());
    return n;
  };
  CHECK(data::SequentialSampler(3).order(1) == Numbers{0, 1, 2});
  const data::RandomSampler random(50);
  CHECK(random.order(1) == random.order(1));
  CHECK(random.order(1) != random.order(2));
  CHECK(sorted(random.order(1)) == data::SequentialSampler(50).order(0));
  CHECK(data::RandomSampler(3, false, 7).order(0).size() == 7);
  CHECK(data::RandomSampler(3, true, 100).order(0).size() == 100);
  CHECK(sorted(data::SubsetRandomSampler({9, 7}).order(3)) == Numbers{7, 9});
  const Numbers drawn = data::WeightedRandomSampler({0.2, 0, 0.8}, 4000).order(5);
  CHECK(std::count(drawn.begin(), drawn.end(), 1) == 0);
  CHECK(std::count(drawn.begin(), drawn.end(), 0) > 600);
  CHECK(std::count(drawn.begin(), drawn.end(), 0) < 1000);
  CHECK(sorted(data::WeightedRandomSampler({0.2, 0, 0.8}, 2, false).order(5)) == Numbers{0, 2});
  std::set<int64_t> seen;
  for (int64_t rank = 0; rank < 3; ++rank) {
    data::DistributedSampler part(10, 3, rank);
    CHECK(part.size() == 4);
    for (int64_t i : part.order(part.draw(nullptr))) seen.insert(i);
    const Numbers before = part.order(part.draw(nullptr));
    part.set_epoch(1);
    CHECK(part.order(part.draw(nullptr)) != before);
  }
  CHECK(seen.size() == 10);
  const auto parts = data::random_split(rows(7), {3, 4});
  Numbers together = parts[0]->indices();
  together.insert(together.end(), parts[1]->indices().begin(), parts[1]->indices().end());
  CHECK(sorted(together) == data::SequentialSampler(7).order(0));
}

TEST_CASE("Options that do not go together are refused", "[data]") {
  const auto refused = [](data::DataLoaderOptions o) { return message([&] { data::DataLoader(rows(2), o); }); };
  CHECK_THAT(refused({.batch_size = 0}), Contains("expected a positive integer, got 0 (batch_size)"));
  CHECK_THAT(refused({.num_workers = -1}), Contains("(num_workers)"));
  CHECK_THAT(refused({.shuffle = true, .sampler = std::make_shared<data::SequentialSampler>(2)}),
             Contains("mutually exclusive"));
  CHECK_THAT(message([] { data::RandomSampler(0); }), Contains("positive number of samples"));
  CHECK_THAT(message([] { data::WeightedRandomSampler({0.0}, 1); }), Contains("finite weights"));
  CHECK_THAT(message([] { data::DistributedSampler(4, 2, 2); }), Contains("expected a rank from 0 to 1, got 2"));
  CHECK_THAT(message([] { data::random_split(rows(3), {1, 1}); }), Contains("sum to 3"));
  CHECK_THAT(message([] { data::TensorDataset({}); }), Contains("one tensor or more"));
}

namespace {

/// A stream of every n-th number below `count`, each with a random one.
struct Counting : data::IterableDataset {
  int64_t count = 23, bad = -1;
  bool seeks = false;
  mutable std::atomic<int64_t> read = 0;

  struct Part : data::Stream {
    const Counting& whole;
    int64_t at, step;
    Part(const Counting& of, int64_t first, int64_t by) : whole(of), at(first), step(by) {}
    std::optional<data::Sample> next(Generator& random) override {
      if (at >= whole.count) return std::nullopt;
      const int64_t value = std::exchange(at, at + step);
      ++whole.read;
      VESTA_CHECK(value != whole.bad, index, "Counting: there is no ", value, ".");
      return data::Sample{full({1}, value), rand({2}, &random, DType::float64)};
    }
    bool seek(int64_t samples) override {
      at += whole.seeks ? samples * step : 0;
      return whole.seeks;
    }
  };
  std::unique_ptr<data::Stream> iterate(int worker, int workers) const override {
    return std::make_unique<Part>(*this, worker, workers);
  }
  std::optional<int64_t> size() const override { return count; }
};

struct Endless : data::IterableDataset {
  std::unique_ptr<data::Stream> iterate(int, int) const override { return nullptr; }
};

/// A sampler of batches of growing size.
struct Growing : data::BatchSampler {
  int64_t size() const override { return 3; }
  std::vector<std::vector<int64_t>> order(uint64_t seed) const override {
    const int64_t s = int64_t(seed % 5);
    return {{s}, {s + 1, s + 2}, {s + 3, s + 4, s}};
  }
};

}  // namespace

TEST_CASE("A stream is divided among threads, which give batches in turn", "[data]") {
  const auto dataset = std::make_shared<Counting>();
  Generator g(5);
  data::DataLoader alone(dataset, {.batch_size = 4, .generator = &g});
  const auto first = all(alone);
  REQUIRE(alone.size() == 6);
  REQUIRE(first.size() == 6);
  for (size_t i = 0; i < 6; ++i) REQUIRE(first[i][0] == int64_t(4 * i));
  g.manual_seed(5);
  data::DataLoader one(dataset, {.batch_size = 4, .num_workers = 1, .generator = &g});
  REQUIRE(all(one) == first);

  data::DataLoader three(dataset, {.batch_size = 2, .num_workers = 3, .generator = &g, .prefetch_factor = 1});
  std::vector<Numbers> found = all(three);
  std::vector<Numbers> starts;
  for (const Numbers& batch : found) starts.push_back(Numbers(batch.begin(), batch.begin() + long(batch.size()) / 3));
  REQUIRE(
      starts ==
      std::vector<Numbers>{
          {0, 3}, {1, 4}, {2, 5}, {6, 9}, {7, 10}, {8, 11}, {12, 15}, {13, 16}, {14, 17}, {18, 21}, {19, 22}, {20}});
  data::DataLoader whole(dataset, {.batch_size = 2, .num_workers = 3, .drop_last = true});
  REQUIRE(all(whole).size() == 11);
  data::DataLoader any(dataset, {.batch_size = 2, .num_workers = 3, .in_order = false});
  REQUIRE(all(any).size() == 12);
}

TEST_CASE("A stream resumes at every batch, read again or not", "[data]") {
  const bool seeks = GENERATE(false, true);
  const int workers = GENERATE(0, 1, 3);
  const auto dataset = std::make_shared<Counting>();
  dataset->seeks = seeks;
  data::DataLoader loader(dataset, {.batch_size = 2, .num_workers = workers});
  std::vector<Numbers> seen;
  std::vector<data::LoaderState> states;
  for (const data::Sample& batch : loader) {
    seen.push_back(numbers(batch[1] * 1e12));
    states.push_back(loader.state_dict());
  }
  for (size_t place : {size_t(0), size_t(3), seen.size() - 2, seen.size() - 1}) {
    data::DataLoader other(dataset, {.batch_size = 2, .num_workers = workers});
    other.load_state_dict(states[place]);
    dataset->read = 0;
    size_t at = place + 1;
    for (const data::Sample& batch : other) REQUIRE(numbers(batch[1] * 1e12) == seen.at(at++));
    REQUIRE(at == seen.size());
    REQUIRE(dataset->read <= (seeks ? int64_t(2 * (seen.size() - place)) : 23));
  }
  data::DataLoader other(dataset, {.batch_size = 2, .num_workers = 2});
  other.load_state_dict(states[0]);
  REQUIRE_THAT(message([&] { other.begin(); }), Contains("as many workers as it had"));
}

TEST_CASE("Errors of a stream name the sample and its worker", "[data]") {
  const int workers = GENERATE(0, 2);
  const auto dataset = std::make_shared<Counting>();
  dataset->bad = 6;
  data::DataLoader loader(dataset, {.batch_size = 2, .num_workers = workers});
  int64_t good = 0, failed = 0;
  std::string said;
  std::optional<data::DataLoader::Iterator> it;
  try {
    it = loader.begin();
    while (!(*it == loader.end())) {
      ++good;
      try {
        ++*it;
      } catch (const Error& e) {
        said = e.message(), ++failed;
        ++*it;
      }
    }
  } catch (const Error& e) {
    FAIL(e.message());
  }
  REQUIRE(failed == 1);
  REQUIRE_THAT(said, Contains("there is no 6. In sample 3 of worker 0 of a DataLoader") ||
                         Contains("there is no 6. In sample 6 of worker 0 of a DataLoader"));
  REQUIRE(good >= 10);
  data::DataLoader unable(dataset, {.num_workers = 1, .worker_init_fn = [](int) { throw std::runtime_error("no"); }});
  REQUIRE_THROWS_WITH(unable.begin(), "no");
  data::DataLoader none(std::make_shared<Endless>(), {.num_workers = workers});
  REQUIRE_THAT(message([&] { none.begin(); }), Contains("expected iterate() to return a stream"));
  REQUIRE_THAT(message([&] { none.size(); }), Contains("IterableDataset with a size()"));
  REQUIRE_THAT(message([&] { data::DataLoader(dataset, {.shuffle = true}); }), Contains("has its own order"));
}

TEST_CASE("A batch sampler chooses whole batches", "[data]") {
  const int workers = GENERATE(0, 2);
  const auto dataset = std::make_shared<Noisy>();
  data::DataLoader loader(dataset, {.batch_sampler = std::make_shared<Growing>(), .num_workers = workers});
  REQUIRE(loader.size() == 3);
  std::vector<Numbers> seen;
  std::vector<data::LoaderState> states;
  for (const data::Sample& batch : loader) {
    seen.push_back(numbers(batch[0]));
    states.push_back(loader.state_dict());
  }
  const int64_t s = seen[0][0];
  REQUIRE(seen == std::vector<Numbers>{{s}, {s + 1, s + 2}, {s + 3, s + 4, s}});
  loader.load_state_dict(states[0]);
  REQUIRE(all(loader).size() == 2);
  const auto sampler = std::make_shared<Growing>();
  REQUIRE_THAT(message([&] { data::DataLoader(dataset, {.batch_size = 2, .batch_sampler = sampler}); }),
               Contains("batch_sampler is mutually exclusive"));
  REQUIRE_THAT(message([&] { data::DataLoader(dataset, {.shuffle = true, .batch_sampler = sampler}); }),
               Contains("batch_sampler is mutually exclusive"));
}

TEST_CASE("Batches are pinned where there is an accelerator to pin them for", "[data]") {
  const auto asked = [](std::shared_ptr<const data::Dataset> dataset) {
    data::DataLoader loader(std::move(dataset), {.batch_size = 2, .pin_memory = true});
    for (const data::Sample& batch : loader)
      for (const Tensor& t : batch) REQUIRE(is_pinned(t));
  };
  if (message([] { pin_memory(zeros({1})); }) == "no error") {
    asked(rows(4));
    asked(std::make_shared<Noisy>());
  } else {
    REQUIRE_THAT(message([&] { asked(rows(4)); }), Contains("cuda"));
  }
}
