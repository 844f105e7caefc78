#include "exports.h"

#include <mutex>
#include <unordered_map>
#include <utility>
#include <vector>

namespace vesta::python {
namespace {

struct Exported {
  int exports = 0;
  std::vector<Memory> left;  // freed with the last export
};

std::mutex mutex;
auto& entries() {
  static auto* map = new std::unordered_map<const Storage*, Exported>;
  return *map;
}

}  // namespace

Export::Export(StoragePtr storage) : storage_(std::move(storage)) {
  std::lock_guard lock(mutex);
  ++entries()[storage_.get()].exports;
}

Export::~Export() {
  std::vector<Memory> left;
  {
    std::lock_guard lock(mutex);
    auto at = entries().find(storage_.get());
    if (--at->second.exports > 0) return;
    left = std::move(at->second.left);
    entries().erase(at);
  }
  for (const Memory& memory : left) memory.deleter(memory.context);
}

void free_after_exports(const Storage& storage, const Memory& old) {
  if (!old.deleter) return;  // it lies behind the storage's header
  {
    std::lock_guard lock(mutex);
    if (auto at = entries().find(&storage); at != entries().end()) {
      at->second.left.push_back(old);
      return;
    }
  }
  old.deleter(old.context);
}

}  // namespace vesta::python
