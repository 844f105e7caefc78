// Datasets, samplers and the loader in C++: the same batches for any number of threads, errors, places in a pass.
#include <vesta/core/ops/factory.h>
#include <vesta/nn/data/dataloader.h>

#include <catch2/catch.hpp>

#include <atomic>
#include <set>
#include <thread>

namespace {

using namespace vesta;
using Catch::Matchers::Contains;
using Numbers = std::vector<int64_t>;

Numbers numbers(const Tensor& t) {
  const Tensor flat = t.contiguous().to(DType::int64);
  const int64_t* p = flat.data_ptr<int64_t>();
  return {p, p + flat.numel()};
}

/// Gives the index and two random numbers.
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

std::string message(const std::function<void()>& f) {
  try {
    f();
  } catch (const Error& e) {
    return e.message();
  }
  return "no error";
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
