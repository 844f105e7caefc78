// Process groups from C++: ranks are threads of this process that meet in a HashStore.
#include <vesta/core/ops/ops.h>
#include <vesta/multiprocessing/process_group.h>
#include <vesta/multiprocessing/store.h>
#include <vesta/vesta.h>

#include <atomic>
#include <catch2/catch.hpp>
#include <thread>

namespace {

using namespace vesta;

/// Calls `work(rank, group)` on a thread for each rank of a new group; rethrows the first exception.
void with_ranks(int size, const std::function<void(int, ProcessGroup&)>& work) {
  auto store = std::make_shared<HashStore>();
  std::vector<std::exception_ptr> errors(static_cast<size_t>(size));
  std::vector<std::thread> threads;
  for (int rank = 0; rank < size; ++rank) {
    threads.emplace_back([&, rank] {
      try {
        GroupOptions options;
        options.name = "cpp";
        options.timeout = std::chrono::seconds(60);
        ProcessGroupPtr group = new_process_group("gloo", store, rank, size, options);
        work(rank, *group);
        group->shutdown();
      } catch (...) {
        errors[size_t(rank)] = std::current_exception();
      }
    });
  }
  for (std::thread& t : threads) t.join();
  for (std::exception_ptr& e : errors) {
    if (e) std::rethrow_exception(e);
  }
}

bool available() {
  std::string why_not;
  if (has_group_backend("gloo", &why_not)) return true;
  WARN("no Gloo in this build: " << why_not);
  return false;
}

}  // namespace

TEST_CASE("process group: collectives of C++ programs", "[distributed]") {
  if (!available()) return;
  with_ranks(3, [](int rank, ProcessGroup& g) {
    std::atomic<int> wrong{0};
    for (int64_t n : {4, 300'000}) {
      Tensor t = full({n}, float(rank + 1));
      g.all_reduce({t})->wait();
      wrong += t.sum().item<double>() != 6.0 * double(n);
      g.broadcast({t.mul_(rank)}, 2)->wait();
      wrong += t.sum().item<double>() != 12.0 * double(n);
      std::vector<Tensor> parts{zeros({n}), zeros({n}), zeros({n})};
      g.all_gather(parts, full({n}, float(rank)))->wait();
      wrong += parts[2].sum().item<double>() != 2.0 * double(n);
    }
    g.barrier()->wait();
    if (wrong) throw std::runtime_error("a collective gave wrong values");
  });
}

TEST_CASE("process group: callbacks, several at once, and what a Work holds", "[distributed]") {
  if (!available()) return;
  with_ranks(2, [](int rank, ProcessGroup& g) {
    std::atomic<int> called{0};
    Tensor t = ones({8});
    WorkPtr work = g.all_reduce({t});
    work->then([&](Work& w) { called += w.is_success() && w.result().size() == 1; });
    work->wait();
    g.start_coalescing();
    g.all_reduce({t});
    g.all_reduce({t}, ReduceOp::max);
    WorkPtr both = g.end_coalescing();
    both->wait();
    const bool fine = called == 1 && work->result().empty() && t.sum().item<double>() == 32 && rank < 2;
    if (!fine) throw std::runtime_error("Work does not do what it says");
  });
}

TEST_CASE("process group: who calls from C++ names the place", "[distributed]") {
  if (!available()) return;
  std::atomic<int> named{0};
  with_ranks(2, [&](int rank, ProcessGroup& g) {
    try {
      CallSite here(rank ? "bucket 1 (head.weight)" : "bucket 0 (body.weight, body.bias)");
      g.all_reduce({zeros({rank ? 5 : 4})})->wait();
    } catch (const DistributedError& e) {
      named +=
          e.message().find("all_reduce(SUM, float32 [4]) at bucket 0 (body.weight, body.bias)") != std::string::npos &&
          e.message().find("all_reduce(SUM, float32 [5]) at bucket 1 (head.weight)") != std::string::npos;
    }
  });
  CHECK(named == 2);
}

TEST_CASE("stores: what a backend that is not there says", "[distributed]") {
  CHECK_THROWS_WITH(new_process_group("nothing", std::make_shared<HashStore>(), 0, 1),
                    Catch::Contains("there is no backend 'nothing'"));
  CHECK_THROWS_WITH(new_process_group("../etc", std::make_shared<HashStore>(), 0, 1),
                    Catch::Contains("no backend has such a name"));
}
