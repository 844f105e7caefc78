#include <vesta/multiprocessing/store.h>

#include <charconv>

#include <vesta/multiprocessing/store_values.h>

namespace vesta {

std::vector<std::string> Store::multi_get(const Keys& keys) {
  std::vector<std::string> values;
  for (const std::string& key : keys) values.push_back(get(key));
  return values;
}

void Store::multi_set(const Keys& keys, const std::vector<std::string>& values) {
  VESTA_CHECK(keys.size() == values.size(), value, "multi_set: expected a value for each of ", keys.size(),
              " keys, got ", values.size(), " (values).");
  for (size_t i = 0; i < keys.size(); ++i) set(keys[i], values[i]);
}

// ---- PrefixStore ----

Keys PrefixStore::full(const Keys& keys) const {
  Keys r;
  for (const std::string& key : keys) r.push_back(full(key));
  return r;
}

Keys PrefixStore::keys(const std::string& prefix) {
  Keys r = store_->keys(full(prefix));
  for (std::string& key : r) key.erase(0, prefix_.size() + 1);
  return r;
}

// ---- HashStore ----

namespace detail {

int64_t stored_number(const std::string& key, const std::string& text) {
  int64_t n = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), n);
  if (error != std::errc() || end != text.data() + text.size()) {
    distributed_fail(DistributedCause::store, "add: the value of key ", key, " is no number.");
  }
  return n;
}

void wait_timed_out(const Keys& missing, Milliseconds timeout) {
  std::string list;
  for (const std::string& key : missing) list += (list.empty() ? "" : ", ") + key;
  distributed_fail(DistributedCause::store, "wait timeout after ", timeout.count(), "ms, keys: ", list);
}

}  // namespace detail

using detail::stored_number;

void HashStore::set(const std::string& key, const std::string& value) {
  std::lock_guard lock(mutex_);
  values_[key] = value;
  changed_.notify_all();
}

std::string HashStore::get(const std::string& key) {
  wait({key}, timeout());
  std::lock_guard lock(mutex_);
  return values_[key];
}

int64_t HashStore::add(const std::string& key, int64_t amount) {
  std::lock_guard lock(mutex_);
  auto at = values_.find(key);
  const int64_t sum = amount + (at == values_.end() ? 0 : stored_number(key, at->second));
  values_[key] = std::to_string(sum);
  changed_.notify_all();
  return sum;
}

void HashStore::wait(const Keys& keys, Milliseconds timeout) {
  std::unique_lock lock(mutex_);
  Keys missing;
  auto complete = [&] {
    missing.clear();
    for (const std::string& key : keys) {
      if (!values_.count(key)) missing.push_back(key);
    }
    return missing.empty();
  };
  if (!wait_until(changed_, lock, deadline_in(timeout), complete)) detail::wait_timed_out(missing, timeout);
}

bool HashStore::check(const Keys& keys) {
  std::lock_guard lock(mutex_);
  for (const std::string& key : keys) {
    if (!values_.count(key)) return false;
  }
  return true;
}

std::string HashStore::compare_set(const std::string& key, const std::string& expected, const std::string& desired) {
  std::lock_guard lock(mutex_);
  auto at = values_.find(key);
  if (at == values_.end() ? !expected.empty() : at->second != expected) {
    return at == values_.end() ? expected : at->second;
  }
  changed_.notify_all();
  return values_[key] = desired;
}

bool HashStore::delete_key(const std::string& key) {
  std::lock_guard lock(mutex_);
  return values_.erase(key) > 0;
}

int64_t HashStore::num_keys() {
  std::lock_guard lock(mutex_);
  return int64_t(values_.size());
}

void HashStore::append(const std::string& key, const std::string& value) {
  std::lock_guard lock(mutex_);
  values_[key] += value;
  changed_.notify_all();
}

Keys HashStore::keys(const std::string& prefix) {
  std::lock_guard lock(mutex_);
  Keys r;
  for (auto at = values_.lower_bound(prefix); at != values_.end() && at->first.starts_with(prefix); ++at) {
    r.push_back(at->first);
  }
  return r;
}

}  // namespace vesta
