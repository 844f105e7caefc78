// The forms of all weights: Note [Kept weights] in kept_weights.h.
#include <vesta/core/cpu/kept_weights.h>
#include <vesta/core/packed_weights.h>

#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <mutex>
#include <unordered_map>
#include <utility>
#include <vector>

namespace vesta::cpu {
namespace {

using std::int64_t;

constexpr int64_t kMostBytes = int64_t{512} << 20;
constexpr int64_t kPartOfMemory = 8;
constexpr std::size_t kMostSeen = 4096;  // weights that are remembered, kept or not
constexpr std::uint64_t kRounds = 4;  // a form may go that was not used while all were looked for so many times

/// A form, or a weight that was met once (`packed` is null).
struct Entry {
  PackedKey key;
  std::shared_ptr<const void> packed;
  int64_t bytes = 0;
  std::uint64_t used = 0;  // the number of the last look
};
using Entries = std::vector<Entry>;

/// All entries, by storage. What is taken out is destroyed after the lock is given up: it frees memory.
class Kept {
 public:
  static Kept& instance() {
    static Kept* const kept = [] {
      // Another thread may hold the lock while this one forks; the child must find it free.
      pthread_atfork([] { instance().mutex_.lock(); }, [] { instance().mutex_.unlock(); },
                     [] { instance().mutex_.unlock(); });
      return new Kept;  // never destroyed: weights outlive the end of main
    }();
    return *kept;
  }

  KeptForm find(const PackedKey& key, int64_t bytes) {
    Entries out;
    const std::lock_guard lock(mutex_);
    ++looks_;
    Entries& of = entries_[key.weight.storage];
    take_if(of, [&](const Entry& e) { return e.key.weight.writes != key.weight.writes; }, out);
    const auto at = std::ranges::find(of, key, &Entry::key);
    if (at == of.end()) {
      if (count_ >= kMostSeen) take_seen_once(out);
      entries_[key.weight.storage].push_back({key, nullptr, 0, looks_});
      ++count_;
      key.weight.storage->expect_drop();
      return {};
    }
    at->used = looks_;
    if (at->packed) return {at->packed, false};
    return {nullptr, make_room(bytes, out)};
  }

  void keep(const PackedKey& key, std::shared_ptr<const void> packed, int64_t bytes) {
    const std::lock_guard lock(mutex_);
    const auto of = entries_.find(key.weight.storage);
    if (of == entries_.end() || bytes_ + bytes > most_) return;
    const auto at = std::ranges::find(of->second, key, &Entry::key);
    if (at == of->second.end() || at->packed) return;  // written meanwhile, or another thread was faster
    at->packed = std::move(packed), at->bytes = bytes;
    bytes_ += bytes, ++forms_;
  }

  void drop(const Storage* storage) {
    Entries out;
    const std::lock_guard lock(mutex_);
    const auto of = entries_.find(storage);
    if (of == entries_.end()) return;
    take_if(of->second, [](const Entry&) { return true; }, out);
    entries_.erase(of);
  }

  void drop_all() {
    std::unordered_map<const Storage*, Entries> out;
    const std::lock_guard lock(mutex_);
    out.swap(entries_);
    count_ = 0, bytes_ = forms_ = 0;
  }

  KeptWeights held() {
    const std::lock_guard lock(mutex_);
    return {forms_, bytes_};
  }

  int64_t limit(int64_t bytes) {
    const std::lock_guard lock(mutex_);
    return std::exchange(most_, bytes);
  }

 private:
  Kept() {
    const int64_t pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
    if (pages > 0 && page > 0) most_ = std::min(kMostBytes, pages / kPartOfMemory * page);
  }

  /// Moves the entries for which `f` is true to `out`.
  template <class F>
  void take_if(Entries& of, const F& f, Entries& out) {
    for (std::size_t i = 0; i < of.size();) {
      if (!f(of[i])) {
        ++i;
        continue;
      }
      bytes_ -= of[i].bytes, forms_ -= of[i].packed != nullptr, --count_;
      out.push_back(std::move(of[i]));
      if (i + 1 < of.size()) of[i] = std::move(of.back());
      of.pop_back();
    }
  }

  /// Forgets which weights were met once.
  void take_seen_once(Entries& out) {
    for (auto of = entries_.begin(); of != entries_.end();) {
      take_if(of->second, [](const Entry& e) { return !e.packed; }, out);
      of = of->second.empty() ? entries_.erase(of) : std::next(of);
    }
  }

  /// Makes room for `bytes` more; returns whether there is. Entries keep their places unless they go.
  bool make_room(int64_t bytes, Entries& out) {
    if (bytes > most_) return false;
    while (bytes_ + bytes > most_) {
      Entry* oldest = nullptr;
      for (auto& [storage, of] : entries_) {
        for (Entry& e : of) {
          const bool old = e.key.weight.writes != storage->writes() || looks_ - e.used > kRounds * count_;
          if (e.packed && old && (oldest == nullptr || e.used < oldest->used)) oldest = &e;
        }
      }
      if (oldest == nullptr) return false;
      bytes_ -= std::exchange(oldest->bytes, 0), --forms_;
      out.push_back({oldest->key, std::exchange(oldest->packed, nullptr)});
    }
    return true;
  }

  std::mutex mutex_;
  std::unordered_map<const Storage*, Entries> entries_;
  std::size_t count_ = 0;  // entries
  std::uint64_t looks_ = 0;
  int64_t forms_ = 0, bytes_ = 0, most_ = kMostBytes;
};

}  // namespace

Weight keepable(const Tensor& weight) {
  if (!WithoutPackedWeights::may_keep()) return {};
  const Storage* const storage = weight.impl()->storage().get();
  if (storage->nbytes() < Storage::kLeastPacked || !storage->counts_all_writes()) return {};
  return {storage, storage->writes(), static_cast<unsigned char>(weight.dtype()), false, weight.impl()->data()};
}

KeptForm find_packed(const PackedKey& key, int64_t bytes) { return Kept::instance().find(key, bytes); }

void keep_packed(const PackedKey& key, std::shared_ptr<const void> packed, int64_t bytes) {
  Kept::instance().keep(key, std::move(packed), bytes);
}

void drop_packed_weights_of(const Storage* storage) noexcept { Kept::instance().drop(storage); }
KeptWeights kept_weights() { return Kept::instance().held(); }
void drop_packed_weights() noexcept { Kept::instance().drop_all(); }
std::int64_t limit_kept_weights(std::int64_t bytes) { return Kept::instance().limit(bytes); }

}  // namespace vesta::cpu
