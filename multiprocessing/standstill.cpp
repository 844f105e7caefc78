#include <vesta/multiprocessing/standstill.h>

#include <algorithm>
#include <set>

#include <vesta/core/base/error.h>
#include <vesta/multiprocessing/process_group_core.h>
#include <vesta/multiprocessing/wire.h>

namespace vesta {
namespace {

constexpr double kOldEnough = 4;                            // seconds that a rank has waited with all its threads
constexpr auto kFresh = std::chrono::seconds(3);            // an older report may be out of date
constexpr auto kConfirm = std::chrono::milliseconds(1500);  // a standstill must be seen again this much later
constexpr size_t kMostRanks = 8;                            // in a message

std::mutex selves_mutex;
std::map<std::string, std::weak_ptr<SelfStand>>& selves() {
  static std::map<std::string, std::weak_ptr<SelfStand>> map;
  return map;
}

thread_local WaitScope* scope = nullptr;

}  // namespace

std::string Stand::encode() const {
  wire::Writer w;
  w.put(epoch).put(seconds).put(uint32_t(waits.size()));
  for (const Wait& wait : waits) {
    w.put(std::string_view(wait.call)).put(std::string_view(wait.group)).put(uint8_t(wait.any));
    w.put(uint32_t(wait.absent.size()));
    for (const Absent& a : wait.absent) w.put(std::string_view(a.who)).put(a.epoch);
  }
  return w.take();
}

Stand Stand::decode(std::string_view bytes) {
  wire::Reader r(bytes);
  Stand s;
  s.epoch = r.get<uint64_t>();
  s.seconds = r.get<double>();
  for (uint32_t n = r.get<uint32_t>(); n > 0; --n) {
    Wait wait;
    wait.call = r.text();
    wait.group = r.text();
    wait.any = r.get<uint8_t>();
    for (uint32_t m = r.get<uint32_t>(); m > 0; --m) {
      Absent a;
      a.who = r.text();
      a.epoch = r.get<uint64_t>();
      wait.absent.push_back(std::move(a));
    }
    s.waits.push_back(std::move(wait));
  }
  return s;
}

std::shared_ptr<SelfStand> SelfStand::of(const std::string& who) {
  std::lock_guard lock(selves_mutex);
  std::erase_if(selves(), [](const auto& entry) { return entry.second.expired(); });
  std::weak_ptr<SelfStand>& known = selves()[who];
  std::shared_ptr<SelfStand> self = known.lock();
  if (!self) known = self = std::make_shared<SelfStand>(who);
  return self;
}

void SelfStand::calls() {
  /// The thread's own list: a thread that has ended calls nothing more.
  struct Called {
    std::vector<std::weak_ptr<SelfStand>> selves;
    ~Called() {
      for (auto& weak : selves) {
        if (auto self = weak.lock()) self->goes_on(std::this_thread::get_id(), true);
      }
    }
  };
  thread_local Called called;
  bool first = false;
  {
    std::lock_guard lock(mutex_);
    first = threads_.try_emplace(std::this_thread::get_id()).second;
    ++epoch_;
  }
  if (!first) return;
  std::erase_if(called.selves, [](const auto& weak) { return weak.expired(); });
  called.selves.push_back(weak_from_this());
}

void SelfStand::waits(std::function<Wait()> wait) {
  if (!scope || !scope->for_ever_ || scope->told_) return;
  scope->told_ = shared_from_this();
  std::lock_guard lock(mutex_);
  threads_[std::this_thread::get_id()] = {std::move(wait), Clock::now()};
  ++epoch_;
}

void SelfStand::goes_on(std::thread::id id, bool ended) {
  std::function<Wait()> dropped;  // outside the lock
  std::lock_guard lock(mutex_);
  ++epoch_;
  auto at = threads_.find(id);
  if (at == threads_.end()) return;
  dropped.swap(at->second.wait);
  if (ended) threads_.erase(at);
}

uint64_t SelfStand::epoch() {
  std::lock_guard lock(mutex_);
  return epoch_;
}

Stand SelfStand::stand() {
  Stand s;
  std::vector<std::function<Wait()>> waits;
  {
    std::lock_guard lock(mutex_);
    s.epoch = epoch_;
    s.seconds = 1e9;
    for (const auto& [id, thread] : threads_) {
      if (!thread.wait) return s;
      s.seconds = std::min(s.seconds, std::chrono::duration<double>(Clock::now() - thread.since).count());
      waits.push_back(thread.wait);
    }
  }
  for (const auto& wait : waits) {  // without the lock, because they look into groups
    s.waits.push_back(wait());
    if (s.waits.back().absent.empty()) {  // all have come: it continues
      s.waits.clear();
      break;
    }
  }
  return s;
}

void SelfStand::learn(const std::string& who, Stand stand) {
  std::lock_guard lock(mutex_);
  known_[who] = {std::move(stand), Clock::now()};
}

/// Returns the ranks that cannot continue: those that wait with all threads, and only for ranks that cannot continue
/// either.
std::map<std::string, Stand> SelfStand::stuck() {
  std::map<std::string, Stand> left;
  Stand own = stand();
  if (!own.waits.empty() && own.seconds >= kOldEnough) left[who_] = std::move(own);
  {
    std::lock_guard lock(mutex_);
    for (const auto& [who, known] : known_) {
      if (who == who_ || known.stand.waits.empty() || known.stand.seconds < kOldEnough) continue;
      if (Clock::now() - known.heard <= kFresh) left[who] = known.stand;
    }
  }
  auto absent = [&](const Absent& a) {
    auto at = left.find(a.who);
    return at != left.end() && at->second.epoch == a.epoch;
  };
  auto hopeless = [&](const Wait& w) {
    return w.any ? std::ranges::all_of(w.absent, absent) : std::ranges::any_of(w.absent, absent);
  };
  for (bool changed = true; changed;) {
    changed =
        std::erase_if(left, [&](const auto& one) { return !std::ranges::all_of(one.second.waits, hopeless); }) > 0;
  }
  return left;
}

void SelfStand::join(const std::string& name, std::weak_ptr<GroupCore> group) {
  std::lock_guard lock(mutex_);
  std::erase_if(groups_, [](const auto& entry) { return entry.second.expired(); });
  groups_.emplace_back(name, std::move(group));
}

std::optional<std::pair<std::string, std::vector<std::shared_ptr<GroupCore>>>> SelfStand::standstill() {
  const std::map<std::string, Stand> found = stuck();
  if (!found.count(who_)) return std::nullopt;
  std::map<std::string, uint64_t> epochs;
  for (const auto& [who, stand] : found) epochs[who] = stand.epoch;
  {
    std::lock_guard lock(mutex_);
    if (epochs != seen_) {
      seen_ = epochs;
      seen_since_ = Clock::now();
    }
    if (Clock::now() - seen_since_ < kConfirm) return std::nullopt;
  }
  std::set<std::string> groups;
  std::string told = "ranks wait for each other, and none can go on.";
  size_t lines = 0;
  for (const auto& [who, stand] : found) {
    for (const Wait& wait : stand.waits) {
      groups.insert(wait.group);
      std::string list;
      for (const Absent& a : wait.absent) list += (list.empty() ? "" : wait.any ? " or " : ", ") + a.who;
      if (lines < kMostRanks) told += text("\n  ", who, " waits in ", wait.call, " for ", list);
    }
    ++lines;
  }
  if (lines > kMostRanks) told += text("\n  and ", lines - kMostRanks, " more");
  told += "\nAll ranks must make the calls that belong together in the same order, those of different groups, too.";
  std::vector<std::shared_ptr<GroupCore>> concerned;
  std::lock_guard lock(mutex_);
  for (const auto& [name, weak] : groups_) {
    auto group = weak.lock();
    if (group && groups.count(name)) concerned.push_back(std::move(group));
  }
  // The groups in which this rank waits come last: as soon as they fail its threads continue, and may leave the
  // others.
  const std::vector<Wait>& own = found.at(who_).waits;
  std::stable_partition(concerned.begin(), concerned.end(), [&](const auto& group) {
    return std::ranges::none_of(own, [&](const Wait& w) { return w.group == group->name; });
  });
  return std::make_pair(std::move(told), std::move(concerned));
}

WaitScope::WaitScope(bool for_ever) : for_ever_(for_ever), outer_(scope) { scope = this; }

WaitScope::~WaitScope() {
  scope = outer_;
  if (told_) told_->goes_on(std::this_thread::get_id(), false);
}

}  // namespace vesta
