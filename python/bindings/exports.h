// Memory shared with other libraries: an array over a tensor, a DLPack capsule. It must stay where it is.
#pragma once
#include <vesta/core/backend.h>
#include <vesta/core/storage.h>

namespace vesta::python {

/// A guard that keeps a storage and its present memory alive, also if the storage moves to other memory.
class Export {
 public:
  explicit Export(StoragePtr storage);
  ~Export();
  Export(const Export&) = delete;
  Export& operator=(const Export&) = delete;

 private:
  StoragePtr storage_;
};

/// Frees memory that `storage` has left behind, at once or with the last export that it has now.
void free_after_exports(const Storage& storage, const Memory& old);

}  // namespace vesta::python
