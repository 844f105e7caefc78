// OrderedDict: keys and values in the order in which they were inserted.
#pragma once
#include <initializer_list>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include <torch/exceptions.h>

namespace torch {

template <class Key, class Value>
class OrderedDict {
 public:
  /// A key and its value.
  class Item {
   public:
    Item(Key key, Value value) : pair_(std::move(key), std::move(value)) {}
    const Key& key() const noexcept { return pair_.first; }
    Value& value() noexcept { return pair_.second; }
    const Value& value() const noexcept { return pair_.second; }
    Value& operator*() { return pair_.second; }
    const Value& operator*() const { return pair_.second; }
    Value* operator->() { return &pair_.second; }
    const Value* operator->() const { return &pair_.second; }
    const std::pair<Key, Value>& pair() const noexcept { return pair_; }
    template <size_t i>
    const auto& get() const {
      if constexpr (i == 0) return pair_.first;
      else return pair_.second;
    }

   private:
    std::pair<Key, Value> pair_;
  };
  using Iterator = typename std::vector<Item>::iterator;
  using ConstIterator = typename std::vector<Item>::const_iterator;

  /// `key_description` names what the keys are ("Parameter") in messages of errors.
  explicit OrderedDict(std::string key_description = "Key") : key_description_(std::move(key_description)) {}
  OrderedDict(std::initializer_list<Item> items) : OrderedDict() {
    for (const Item& i : items) insert(i.key(), i.value());
  }

  const std::string& key_description() const noexcept { return key_description_; }
  Item& front() { return at_least_one().front(); }
  const Item& front() const { return const_cast<OrderedDict*>(this)->front(); }
  Item& back() { return at_least_one().back(); }
  const Item& back() const { return const_cast<OrderedDict*>(this)->back(); }
  Item& operator[](size_t i) { return items_.at(i); }
  const Item& operator[](size_t i) const { return items_.at(i); }
  Value& operator[](const Key& key) {
    Value* found = find(key);
    TORCH_CHECK(found, key_description_, " '", key, "' is not defined");
    return *found;
  }
  const Value& operator[](const Key& key) const { return const_cast<OrderedDict&>(*this)[key]; }
  /// Returns the value of a key, nullptr if there is none.
  Value* find(const Key& key) noexcept {
    const auto at = index_.find(key);
    return at == index_.end() ? nullptr : &items_[at->second].value();
  }
  const Value* find(const Key& key) const noexcept { return const_cast<OrderedDict*>(this)->find(key); }
  bool contains(const Key& key) const noexcept { return index_.count(key) > 0; }

  Iterator begin() { return items_.begin(); }
  ConstIterator begin() const { return items_.begin(); }
  Iterator end() { return items_.end(); }
  ConstIterator end() const { return items_.end(); }
  size_t size() const noexcept { return items_.size(); }
  bool is_empty() const noexcept { return items_.empty(); }
  void reserve(size_t n) { items_.reserve(n), index_.reserve(n); }

  template <class K, class V>
  Value& insert(K&& key, V&& value) {
    Item item(Key(std::forward<K>(key)), Value(std::forward<V>(value)));
    TORCH_CHECK(!contains(item.key()), key_description_, " '", item.key(), "' already defined");
    index_[item.key()] = items_.size();
    items_.push_back(std::move(item));
    return items_.back().value();
  }
  Value& insert(Key key, Value&& value) { return insert<Key, Value>(std::move(key), std::move(value)); }
  void update(const OrderedDict& other) {
    for (const Item& i : other) insert(i.key(), i.value());
  }
  void update(OrderedDict&& other) { update(static_cast<const OrderedDict&>(other)); }
  void erase(const Key& key) {
    const auto found = index_.find(key);
    TORCH_CHECK(found != index_.end(), key_description_, " '", key, "' is not defined");
    const size_t at = found->second;
    items_.erase(items_.begin() + std::ptrdiff_t(at));
    index_.erase(found);
    for (auto& entry : index_) entry.second -= entry.second > at;
  }
  void clear() { items_.clear(), index_.clear(); }

  std::vector<Key> keys() const {
    std::vector<Key> all;
    for (const Item& i : items_) all.push_back(i.key());
    return all;
  }
  std::vector<Value> values() const {
    std::vector<Value> all;
    for (const Item& i : items_) all.push_back(i.value());
    return all;
  }
  std::vector<std::pair<Key, Value>> pairs() const {
    std::vector<std::pair<Key, Value>> all;
    for (const Item& i : items_) all.push_back(i.pair());
    return all;
  }
  const std::vector<Item>& items() const noexcept { return items_; }

 private:
  std::vector<Item>& at_least_one() {
    TORCH_CHECK(!items_.empty(), "Called front() or back() on an empty OrderedDict");
    return items_;
  }
  std::vector<Item> items_;
  std::unordered_map<Key, size_t> index_;
  std::string key_description_;
};

}  // namespace torch
