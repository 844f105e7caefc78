#include <chrono>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>

#include <vesta/nn/data/pass.h>
#include <vesta/nn/data/sample_seed.h>

namespace vesta::data {
namespace {

constexpr uint64_t kPart = uint64_t{1} << 48;  // positions of worker i's part start at i times this, as in Python

/// A pass over streams. Each worker has its own part and keeps its batches in a lane; the caller takes from the lanes
/// in turn, so that the order does not depend on which worker is quicker.
class StreamPass : public Pass {
 public:
  StreamPass(std::shared_ptr<const IterableDataset> dataset, const DataLoaderOptions& options,
             std::shared_ptr<LoaderState> progress);
  ~StreamPass() override { end(); }
  std::optional<Sample> next() override;

 private:
  using Lock = std::unique_lock<std::mutex>;
  struct Made {
    Result result;
    int64_t count = 0;  // samples of the part up to here
    bool end = false;   // of the part; there is no batch
  };
  struct Lane {
    std::unique_ptr<Stream> stream;  // used by its worker only
    int64_t count = 0;
    std::deque<Made> ready;
  };

  void open(Lane& lane, int worker) const;
  Made made(Lane& lane, int worker) const;
  void work(int worker);
  void end();
  /// Returns the lane whose batch can be given now; nothing if that batch is still to come, -1 if all lanes have
  /// ended.
  std::optional<int> choice() const;
  Made await(int lane);
  std::optional<int> awaited();

  const std::shared_ptr<const IterableDataset> dataset_;
  const DataLoaderOptions options_;
  const std::shared_ptr<LoaderState> progress_;
  std::vector<Lane> lanes_;

  std::mutex mutex_;
  std::condition_variable room_, arrival_;
  bool over_ = false;
  std::vector<std::thread> threads_;
};

StreamPass::StreamPass(std::shared_ptr<const IterableDataset> dataset, const DataLoaderOptions& options,
                       std::shared_ptr<LoaderState> progress)
    : dataset_(std::move(dataset)),
      options_(options),
      progress_(std::move(progress)),
      lanes_(size_t(std::max(1, options_.num_workers))) {
  LoaderState& p = *progress_;
  if (p.streams.empty()) p.streams.assign(lanes_.size(), 0), p.ended.assign(lanes_.size(), false);
  VESTA_CHECK(p.streams.size() == lanes_.size() && p.ended.size() == lanes_.size(), value,
              "load_state_dict: an iterable dataset goes on with as many workers as it had, which is ",
              p.streams.size(), ", got ", lanes_.size(), " (num_workers).");
  for (size_t i = 0; i < lanes_.size(); ++i) lanes_[i].count = p.streams[i];
  try {
    for (int i = 0; i < options_.num_workers; ++i)
      if (!p.ended[size_t(i)]) threads_.emplace_back([this, i] { work(i); });
  } catch (...) {  // no more threads can be started
    end();
    throw;
  }
}

void StreamPass::end() {
  {
    Lock lock(mutex_);
    over_ = true;
  }
  room_.notify_all();
  for (std::thread& t : threads_) t.join();
}

/// Starts a part at the position where it is to continue.
void StreamPass::open(Lane& lane, int worker) const {
  lane.stream = dataset_->iterate(worker, int(lanes_.size()));
  VESTA_CHECK(lane.stream, value, "DataLoader: expected iterate() to return a stream, got a null pointer.");
  if (lane.count == 0 || lane.stream->seek(lane.count)) return;
  for (int64_t k = 0; k < lane.count; ++k) {
    Generator random(sample_seed(progress_->seed, uint64_t(worker) * kPart + uint64_t(k), SampleStream::vesta));
    lane.stream->next(random);
  }
}

StreamPass::Made StreamPass::made(Lane& lane, int worker) const {
  Made made;
  try {
    if (!lane.stream) open(lane, worker);
    std::vector<Sample> samples;
    while (int64_t(samples.size()) < options_.batch_size) {
      const uint64_t position = uint64_t(worker) * kPart + uint64_t(lane.count);
      Generator random(sample_seed(progress_->seed, position, SampleStream::vesta));
      std::optional<Sample> sample = lane.stream->next(random);
      if (!sample) break;
      samples.push_back(std::move(*sample));
      ++lane.count;
    }
    made.end = samples.empty() || (options_.drop_last && int64_t(samples.size()) < options_.batch_size);
    if (!made.end) made.result.batch = collated(samples, options_);
  } catch (...) {
    made.end = false;
    made.result.error = error_from(text("sample ", lane.count, " of worker ", worker, " of a DataLoader"));
  }
  made.count = lane.count;
  return made;
}

void StreamPass::work(int worker) {
  Lane& lane = lanes_[size_t(worker)];
  std::exception_ptr failed;
  try {
    if (options_.worker_init_fn) options_.worker_init_fn(worker);
  } catch (...) {
    failed = std::current_exception();
  }
  const size_t ahead = size_t(std::max(1, options_.prefetch_factor));
  for (Lock lock(mutex_);;) {
    room_.wait(lock, [&] { return over_ || lane.ready.size() < ahead; });
    if (over_) return;
    lock.unlock();
    Made one = failed ? Made{{{}, failed}, lane.count, false} : made(lane, worker);
    const bool last = one.end;
    lock.lock();
    lane.ready.push_back(std::move(one));
    if (failed) lane.ready.push_back({{}, lane.count, true});  // its part ends with the error
    arrival_.notify_one();
    if (last || failed) return;
  }
}

std::optional<int> StreamPass::choice() const {
  const int count = int(lanes_.size());
  bool any = false;
  for (int step = 0; step < count; ++step) {
    const int lane = int((progress_->turn + step) % count);
    if (progress_->ended[size_t(lane)]) continue;
    any = true;
    if (threads_.empty() || !lanes_[size_t(lane)].ready.empty()) return lane;
    if (options_.in_order) return std::nullopt;
  }
  return any ? std::nullopt : std::optional<int>(-1);
}

std::optional<int> StreamPass::awaited() {
  Lock lock(mutex_);
  std::optional<int> lane;
  const auto found = [&] { return (lane = choice()).has_value(); };
  if (options_.timeout > 0 && !threads_.empty()) {
    const bool came = arrival_.wait_for(lock, std::chrono::duration<double>(options_.timeout), found);
    VESTA_CHECK(came, runtime, "DataLoader: timed out after ", options_.timeout, " seconds, waiting for worker ",
                progress_->turn, ".");
  } else {
    arrival_.wait(lock, found);
  }
  return *lane < 0 ? std::nullopt : lane;
}

/// Takes the next batch of a lane.
StreamPass::Made StreamPass::await(int number) {
  Lane& lane = lanes_[size_t(number)];
  if (threads_.empty()) return made(lane, number);
  Made one;
  {
    Lock lock(mutex_);
    one = std::move(lane.ready.front());
    lane.ready.pop_front();
  }
  room_.notify_all();
  return one;
}

std::optional<Sample> StreamPass::next() {
  LoaderState& p = *progress_;
  while (const std::optional<int> lane = awaited()) {
    Made one = await(*lane);
    p.streams[size_t(*lane)] = one.count;
    if (one.end) {
      p.ended[size_t(*lane)] = true;
      continue;
    }
    p.turn = (*lane + 1) % int64_t(lanes_.size());
    ++p.batches;
    return delivered(std::move(one.result), options_);
  }
  p.finished = true;
  return std::nullopt;
}

}  // namespace

std::shared_ptr<Pass> begin_pass(std::shared_ptr<const IterableDataset> dataset, const DataLoaderOptions& options,
                                 std::shared_ptr<LoaderState> progress) {
  return std::make_shared<StreamPass>(std::move(dataset), options, std::move(progress));
}

}  // namespace vesta::data
