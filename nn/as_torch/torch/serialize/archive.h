// Archives: tensors and values by name, in trees; what torch::save writes and torch::load reads. The file is in the
// safetensors format, which Python reads too: names are joined by dots, values stand in the metadata. Files that
// PyTorch wrote, in Python or C++, are read as well.
#pragma once
#include <torch/pickle.h>

#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <iterator>
#include <map>
#include <string>

#include <vesta/core/io/safetensors.h>

namespace torch::serialize {

namespace detail {

/// A file that is gone at the end of a scope, for streams.
class TemporaryFile {
 public:
  TemporaryFile() {
    const char* folder = std::getenv("TMPDIR");
    path = std::string(folder ? folder : "/tmp") + "/vesta_archive_XXXXXX";
    const int file = mkstemp(path.data());
    TORCH_CHECK(file >= 0, "archive: no temporary file can be made in ", folder ? folder : "/tmp", ".");
    close(file);
  }
  ~TemporaryFile() { std::remove(path.c_str()); }
  TemporaryFile(const TemporaryFile&) = delete;
  std::string path;
};

/// Writes a value as text: a letter for its type, then its elements.
inline std::string text_of(const IValue& v) {
  char number[40];
  const auto real = [&](double d) {
    std::snprintf(number, sizeof number, "%a", d);
    return std::string(number);
  };
  if (v.isNone()) return "n";
  if (v.isBool()) return v.toBool() ? "b1" : "b0";
  if (v.isInt()) return "i" + std::to_string(v.toInt());
  if (v.isDouble()) return "d" + real(v.toDouble());
  if (v.isString()) return "s" + v.toStringRef();
  TORCH_CHECK(v.isIntList() || v.isDoubleList(), "archive: a value of type ", v.tagKind(), " cannot be written.");
  std::string all = v.isIntList() ? "I" : "D";
  if (v.isIntList()) {
    for (int64_t i : v.toIntVector()) all += std::to_string(i) + ",";
  } else {
    for (double d : v.toDoubleVector()) all += real(d) + ",";
  }
  return all;
}

inline IValue value_of(const std::string& text) {
  const std::string rest = text.substr(1);
  const auto each = [&](const auto& take) {
    for (size_t at = 0, end; (end = rest.find(',', at)) != std::string::npos; at = end + 1) {
      take(rest.substr(at, end - at));
    }
  };
  std::vector<int64_t> integers;
  std::vector<double> reals;
  switch (text.empty() ? 'n' : text[0]) {
    case 'b': return rest == "1";
    case 'i': return int64_t(std::stoll(rest));
    case 'd': return std::strtod(rest.c_str(), nullptr);
    case 's': return rest;
    case 'I': each([&](const std::string& s) { integers.push_back(std::stoll(s)); }); return integers;
    case 'D': each([&](const std::string& s) { reals.push_back(std::strtod(s.c_str(), nullptr)); }); return reals;
    default: return {};
  }
}

}  // namespace detail

/// An archive that is written.
class OutputArchive final {
 public:
  OutputArchive() = default;

  void write(const std::string& key, const Tensor& tensor, bool /*is_buffer*/ = false) {
    if (tensor.defined()) tensors_.emplace_back(key, tensor.detach());
    else values_.emplace_back(key, "n");
  }
  void write(const std::string& key, const IValue& value) {
    if (value.isTensor()) return write(key, value.toTensor());
    if (value.isTensorList() || value.isTuple()) {
      OutputArchive list;
      const bool tensors = value.isTensorList();
      const size_t count = tensors ? value.toTensorVector().size() : value.elements().size();
      for (size_t i = 0; i < count; ++i) {
        if (tensors) list.write(std::to_string(i), value.toTensorVector()[i]);
        else list.write(std::to_string(i), value.elements()[i]);
      }
      write(key, list);
      values_.emplace_back(key, (tensors ? "T" : "P") + std::to_string(count));
      return;
    }
    values_.emplace_back(key, detail::text_of(value));
  }
  void write(const std::string& key, const OutputArchive& below) {
    for (const auto& [name, t] : below.tensors_) tensors_.emplace_back(key + "." + name, t);
    for (const auto& [name, v] : below.values_) values_.emplace_back(key + "." + name, v);
  }

  void save_to(const std::string& filename) const {
    vesta::io::Metadata metadata;
    for (const auto& [name, v] : values_) metadata.emplace_back("value." + name, v);
    vesta::io::save_safetensors(tensors_, filename, metadata);
  }
  void save_to(std::ostream& stream) const {
    const detail::TemporaryFile file;
    save_to(file.path);
    stream << std::ifstream(file.path, std::ios::binary).rdbuf();
    TORCH_CHECK(stream, "save: the stream could not be written.");
  }
  void save_to(const std::function<size_t(const void*, size_t)>& writer) const {
    const detail::TemporaryFile file;
    save_to(file.path);
    std::ifstream in(file.path, std::ios::binary);
    const std::string bytes{std::istreambuf_iterator<char>(in), {}};
    TORCH_CHECK(writer(bytes.data(), bytes.size()) == bytes.size(), "save: the writer did not take all bytes.");
  }
  template <class... T>
  void operator()(T&&... arguments) {
    write(std::forward<T>(arguments)...);
  }

 private:
  std::vector<std::pair<std::string, Tensor>> tensors_;
  std::vector<std::pair<std::string, std::string>> values_;
};

/// An archive that is read.
class InputArchive final {
 public:
  InputArchive() = default;

  /// Reads a tensor: into the one given if it is defined, so that a parameter stays the same object.
  bool try_read(const std::string& key, Tensor& tensor, bool /*is_buffer*/ = false) {
    const auto found = contents_->tensors.find(prefix_ + key);
    if (found == contents_->tensors.end()) {
      const auto value = contents_->values.find(prefix_ + key);
      if (value == contents_->values.end() || value->second != "n") return false;
      tensor = Tensor();
      return true;
    }
    const Tensor read = found->second.to(device_ ? *device_ : tensor.defined() ? tensor.device() : Device());
    if (tensor.defined()) {
      TORCH_CHECK(std::ranges::equal(tensor.sizes(), read.sizes()) || tensor.numel() == 0, "load: '", prefix_ + key,
                  "' has the shape ", read.sizes(), " in the file, here ", tensor.sizes(), ".");
      const vesta::NoGrad off;
      tensor.set_data(read.detach());
    } else {
      tensor = read;
    }
    return true;
  }
  void read(const std::string& key, Tensor& tensor, bool is_buffer = false) {
    TORCH_CHECK(try_read(key, tensor, is_buffer), "No such serialized tensor '", prefix_, key, "'");
  }
  bool try_read(const std::string& key, IValue& value) {
    const auto found = contents_->values.find(prefix_ + key);
    if (found == contents_->values.end()) {
      Tensor t;
      if (!try_read(key, t)) return false;
      value = t;
      return true;
    }
    const std::string& text = found->second;
    if (text[0] != 'T' && text[0] != 'P') {
      value = detail::value_of(text);
      return true;
    }
    const size_t count = std::stoul(text.substr(1));
    std::vector<IValue> each(count);
    for (size_t i = 0; i < count; ++i) read(key + "." + std::to_string(i), each[i]);
    if (text[0] == 'P') {
      value = each;
    } else {
      std::vector<Tensor> tensors;
      for (const IValue& v : each) tensors.push_back(v.isNone() ? Tensor() : v.toTensor());
      value = tensors;
    }
    return true;
  }
  void read(const std::string& key, IValue& value) {
    TORCH_CHECK(try_read(key, value), "No such serialized value '", prefix_, key, "'");
  }
  bool try_read(const std::string& key, InputArchive& below) {
    const std::string start = prefix_ + key + ".";
    const auto under = [&](const auto& entries) {
      const auto first = entries.lower_bound(start);
      return first != entries.end() && first->first.compare(0, start.size(), start) == 0;
    };
    below.contents_ = contents_, below.prefix_ = start, below.device_ = device_;
    return under(contents_->tensors) || under(contents_->values);
  }
  /// Opens the archive of a name; one without contents is empty.
  void read(const std::string& key, InputArchive& below) { (void)try_read(key, below); }

  /// Returns the names at this level.
  std::vector<std::string> keys() const {
    std::map<std::string, bool> found;
    const auto collect = [&](const auto& entries) {
      for (auto at = entries.lower_bound(prefix_); at != entries.end(); ++at) {
        if (at->first.compare(0, prefix_.size(), prefix_) != 0) break;
        found[at->first.substr(prefix_.size(), at->first.find('.', prefix_.size()) - prefix_.size())] = true;
      }
    };
    collect(contents_->tensors), collect(contents_->values);
    std::vector<std::string> names;
    for (const auto& entry : found) names.push_back(entry.first);
    return names;
  }

  void load_from(const std::string& filename, optional<Device> device = {}) {
    device_ = device;
    contents_ = std::make_shared<Contents>();
    prefix_.clear();
    std::ifstream file(filename, std::ios::binary);
    TORCH_CHECK(file, "open file failed, file path: ", filename);
    std::string start(4, '\0');
    file.read(start.data(), 4);
    if (vesta::io::is_torch_archive(start))
      return take(torch::detail::unpickled(*vesta::io::load_torch_archive(filename)), "");
    vesta::io::Metadata metadata;
    for (auto& [name, t] : vesta::io::load_safetensors(filename, &metadata)) contents_->tensors[name] = t;
    for (auto& [name, v] : metadata) {
      if (name.compare(0, 6, "value.") == 0) contents_->values[name.substr(6)] = v;
    }
  }
  void load_from(std::istream& stream, optional<Device> device = {}) {
    const detail::TemporaryFile file;
    std::ofstream(file.path, std::ios::binary) << stream.rdbuf();
    load_from(file.path, device);
  }
  void load_from(const char* data, size_t size, optional<Device> device = {}) {
    const detail::TemporaryFile file;
    std::ofstream(file.path, std::ios::binary).write(data, std::streamsize(size));
    load_from(file.path, device);
  }
  template <class... T>
  void operator()(T&&... arguments) {
    read(std::forward<T>(arguments)...);
  }

 private:
  struct Contents {
    std::map<std::string, Tensor> tensors;
    std::map<std::string, std::string> values;
  };
  /// Takes what PyTorch wrote: dictionaries and objects are archives within this one.
  void take(const IValue& value, const std::string& key) {
    if (value.isGenericDict()) {
      for (const auto& entry : value.toGenericDict()) {
        const IValue& name = entry.key();
        if (name.isString()) take(entry.value(), key.empty() ? name.toStringRef() : key + "." + name.toStringRef());
      }
    } else if (value.isTensor() && value.toTensor().defined()) {
      contents_->tensors[key.empty() ? "0" : key] = value.toTensor();
    } else if (value.isTensorList() || value.isTuple()) {
      const std::vector<IValue> each = value.toListRef();
      for (size_t i = 0; i < each.size(); ++i) {
        take(each[i], key.empty() ? std::to_string(i) : key + "." + std::to_string(i));
      }
      if (!key.empty()) contents_->values[key] = (value.isTuple() ? "P" : "T") + std::to_string(each.size());
    } else {
      contents_->values[key] = detail::text_of(value.isTensor() ? IValue() : value);
    }
  }
  std::shared_ptr<Contents> contents_ = std::make_shared<Contents>();
  std::string prefix_;
  optional<Device> device_;
};

inline OutputArchive& operator<<(OutputArchive& archive, const Tensor& tensor) {
  archive.write("0", tensor);
  return archive;
}
inline InputArchive& operator>>(InputArchive& archive, Tensor& tensor) {
  archive.read("0", tensor);
  return archive;
}

}  // namespace torch::serialize
