// torch::save and torch::load: tensors, modules, optimizers, whatever writes itself to an archive.
#pragma once
#include <torch/pickle.h>
#include <torch/serialize/archive.h>

namespace torch {

/// Writes a value to a file, a stream or a function.
template <class Value, class... SaveToArgs>
void save(const Value& value, SaveToArgs&&... args) {
  serialize::OutputArchive archive;
  archive << value;
  archive.save_to(std::forward<SaveToArgs>(args)...);
}
template <class... SaveToArgs>
void save(const std::vector<Tensor>& tensors, SaveToArgs&&... args) {
  serialize::OutputArchive archive;
  for (size_t i = 0; i < tensors.size(); ++i) archive.write(std::to_string(i), tensors[i]);
  archive.save_to(std::forward<SaveToArgs>(args)...);
}

/// Reads what save() wrote, optionally to a device.
template <class Value, class... LoadFromArgs>
void load(Value& value, LoadFromArgs&&... args) {
  serialize::InputArchive archive;
  archive.load_from(std::forward<LoadFromArgs>(args)...);
  archive >> value;
}
template <class... LoadFromArgs>
void load(std::vector<Tensor>& tensors, LoadFromArgs&&... args) {
  serialize::InputArchive archive;
  archive.load_from(std::forward<LoadFromArgs>(args)...);
  Tensor t;
  for (size_t i = 0; archive.try_read(std::to_string(i), t); ++i) tensors.push_back(std::exchange(t, Tensor()));
}

}  // namespace torch
