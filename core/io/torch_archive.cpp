// A tour: Archive reads the directory at the end of the file into a table of entries; the pickle's reader asks for
// storages by their keys, each of which is read once.
#include <vesta/core/io/torch_archive.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <map>
#include <vector>

#include <vesta/core/io/file.h>
#include <vesta/core/ops/factory.h>

namespace vesta::io {
namespace {

constexpr uint32_t kLocal = 0x04034b50, kCentral = 0x02014b50, kEnd = 0x06054b50;
constexpr uint32_t kEnd64 = 0x06064b50, kLocator64 = 0x07064b50;
constexpr uint64_t kEndSize = 22, kCentralSize = 46, kLocalSize = 30, kLocatorSize = 20, kEnd64Size = 56;
constexpr uint64_t kAlignment = 64;  // of the values of a storage in a file

/// Returns the CRC-32 (polynomial 0xEDB88320, as in ZIP files) of bytes that follow those of `crc`.
uint32_t checksum(const void* data, uint64_t n, uint32_t crc = 0) {
  static const auto kTables = [] {
    std::array<std::array<uint32_t, 256>, 8> t{};
    for (uint32_t i = 0; i < 256; ++i) {
      uint32_t c = i;
      for (int bit = 0; bit < 8; ++bit) c = (c >> 1) ^ (c & 1 ? 0xEDB88320U : 0U);
      t[0][i] = c;
    }
    for (size_t k = 1; k < 8; ++k) {
      for (size_t i = 0; i < 256; ++i) t[k][i] = (t[k - 1][i] >> 8) ^ t[0][t[k - 1][i] & 255];
    }
    return t;
  }();
  const auto* p = static_cast<const unsigned char*>(data);
  crc = ~crc;
  for (; n >= 8; n -= 8, p += 8) {  // eight bytes by eight tables
    uint64_t v = 0;
    std::memcpy(&v, p, 8);
    v ^= crc;
    crc = 0;
    for (size_t k = 0; k < 8; ++k) crc ^= kTables[7 - k][(v >> (8 * k)) & 255];
  }
  for (; n > 0; --n, ++p) crc = (crc >> 8) ^ kTables[0][(crc ^ *p) & 255];
  return ~crc;
}

template <class T>
T number(std::string_view bytes, size_t at) {
  T v;
  std::memcpy(&v, bytes.data() + at, sizeof v);
  return v;
}

/// A ZIP archive in a file or in memory.
class Archive {
 public:
  Archive(const File* file, std::string_view bytes, std::string path)
      : file_(file), bytes_(bytes), path_(std::move(path)), size_(file ? file->size() : bytes.size()) {
    read_directory();
  }
  const std::string& path() const { return path_; }
  [[noreturn]] void refuse(const std::string& why) const { fail(Cause::value, "load: ", path_, ": ", why, "."); }

  /// Returns the folder in which everything lies, by the place of data.pkl.
  std::string root() const {
    for (const auto& [name, entry] : entries_) {
      const size_t at = name.rfind("data.pkl");
      if (at != std::string::npos && at + 8 == name.size() && (at == 0 || name[at - 1] == '/'))
        return name.substr(0, at);
    }
    refuse("expected a file that PyTorch wrote, but there is no data.pkl in this archive");
  }
  bool has(const std::string& name) const { return entries_.count(name) > 0; }
  uint64_t size_of(const std::string& name) const { return find(name).size; }
  /// Reads the contents of an entry, size_of() bytes.
  void read(const std::string& name, void* to) const {
    const Entry& e = find(name);
    const std::string header = part(e.offset, kLocalSize);
    const uint64_t at = e.offset + kLocalSize + number<uint16_t>(header, 26) + number<uint16_t>(header, 28);
    if (number<uint32_t>(header, 0) != kLocal || at > size_ || e.size > size_ - at) {
      refuse("the entry '" + name.substr(0, 100) + "' does not lie within the file");
    }
    copy(to, e.size, at);
    if (checksum(to, e.size) != e.crc) refuse("the entry '" + name.substr(0, 100) + "' has a wrong checksum");
  }
  std::string text(const std::string& name) const {
    std::string s(size_of(name), '\0');
    read(name, s.data());
    return s;
  }

 private:
  struct Entry {
    uint64_t offset, size;
    uint32_t crc;
  };

  const Entry& find(const std::string& name) const {
    const auto found = entries_.find(name);
    if (found == entries_.end()) refuse("expected an entry '" + name.substr(0, 100) + "'");
    return found->second;
  }
  void copy(void* to, uint64_t n, uint64_t at) const {
    if (file_) file_->read(to, n, at);
    else if (n > 0) std::memcpy(to, bytes_.data() + at, n);
  }
  std::string part(uint64_t at, uint64_t n) const {
    if (at > size_ || n > size_ - at) refuse("the archive is cut off or damaged");
    std::string s(n, '\0');
    copy(s.data(), n, at);
    return s;
  }
  void read_directory() {
    const uint64_t tail_size = std::min<uint64_t>(size_, kEndSize + 0xffff), tail_at = size_ - tail_size;
    const std::string tail = part(tail_at, tail_size);
    size_t at = tail.size() < kEndSize ? std::string::npos : tail.rfind("PK\x05\x06", tail.size() - kEndSize);
    if (at == std::string::npos) refuse("expected a ZIP archive, but it has no end record: it is cut off or damaged");
    uint64_t count = number<uint16_t>(tail, at + 10), length = number<uint32_t>(tail, at + 12);
    uint64_t begin = number<uint32_t>(tail, at + 16);
    if (const uint64_t end_at = tail_at + at; end_at >= kLocatorSize) {
      const std::string locator = part(end_at - kLocatorSize, kLocatorSize);
      if (number<uint32_t>(locator, 0) == kLocator64) {
        const std::string end = part(number<uint64_t>(locator, 8), kEnd64Size);
        if (number<uint32_t>(end, 0) != kEnd64) refuse("the archive is damaged");
        count = number<uint64_t>(end, 32), length = number<uint64_t>(end, 40), begin = number<uint64_t>(end, 48);
      }
    }
    const std::string directory = part(begin, length);
    size_t next = 0;
    for (uint64_t i = 0; i < count; ++i) next = read_entry(directory, next);
  }
  /// Reads one entry of the directory; returns where the next begins.
  size_t read_entry(const std::string& directory, size_t at) {
    const auto within = [&](size_t from, size_t n) {
      if (from > directory.size() || n > directory.size() - from) refuse("the archive's directory is damaged");
    };
    within(at, kCentralSize);
    if (number<uint32_t>(directory, at) != kCentral) refuse("the archive's directory is damaged");
    const size_t name_size = number<uint16_t>(directory, at + 28), extra_size = number<uint16_t>(directory, at + 30);
    const size_t end = at + kCentralSize + name_size + extra_size + number<uint16_t>(directory, at + 32);
    within(at, end - at);
    const std::string name = directory.substr(at + kCentralSize, name_size);
    Entry e{number<uint32_t>(directory, at + 42), number<uint32_t>(directory, at + 24),
            number<uint32_t>(directory, at + 16)};
    uint64_t stored = number<uint32_t>(directory, at + 20);
    size_t field = at + kCentralSize + name_size;
    for (const size_t fields_end = field + extra_size; field + 4 <= fields_end;) {
      const uint16_t kind = number<uint16_t>(directory, field), size = number<uint16_t>(directory, field + 2);
      size_t value = field + 4;
      field = value + size;
      if (kind != 1 || field > fields_end) continue;  // 1: sizes of more than 32 bits
      for (uint64_t* of : {&e.size, &stored, &e.offset}) {
        if (*of != 0xffffffff || value + 8 > field) continue;
        *of = number<uint64_t>(directory, value);
        value += 8;
      }
    }
    if (number<uint16_t>(directory, at + 10) != 0 || stored != e.size) {
      refuse("the entry '" + name.substr(0, 100) + "' is compressed. Write the file with torch.save");
    }
    if (e.size > size_) refuse("the entry '" + name.substr(0, 100) + "' is larger than the file");
    entries_[name] = e;
    return end;
  }

  const File* file_;
  std::string_view bytes_;
  std::string path_;
  uint64_t size_;
  std::map<std::string, Entry> entries_;
};

/// Returns the dtype of the elements of "torch.FloatStorage".
DType dtype_of_storage(const Archive& archive, const std::string& name) {
  static constexpr std::pair<const char*, DType> kTypes[] = {{"BoolStorage", DType::bool_},
                                                             {"ByteStorage", DType::uint8},
                                                             {"CharStorage", DType::int8},
                                                             {"ShortStorage", DType::int16},
                                                             {"IntStorage", DType::int32},
                                                             {"LongStorage", DType::int64},
                                                             {"HalfStorage", DType::float16},
                                                             {"BFloat16Storage", DType::bfloat16},
                                                             {"FloatStorage", DType::float32},
                                                             {"DoubleStorage", DType::float64},
                                                             {"ComplexFloatStorage", DType::complex64},
                                                             {"ComplexDoubleStorage", DType::complex128}};
  for (const auto& [storage, dtype] : kTypes) {
    if (name == std::string("torch.") + storage) return dtype;
  }
  archive.refuse("expected a storage of a dtype that Vesta has, got " + name.substr(0, 100));
}

Pickled read_archive(const Archive& archive) {
  const std::string root = archive.root();
  if (archive.has(root + "byteorder") && archive.text(root + "byteorder") != "little") {
    archive.refuse("expected little-endian values");
  }
  std::map<std::string, Tensor> storages;
  const auto storage = [&](const PickledValue& id) {
    const std::string& key = id.items[2]->text;
    if (const auto found = storages.find(key); found != storages.end()) return found->second;
    const DType dtype = dtype_of_storage(archive, id.items[1]->text);
    const uint64_t bytes = archive.size_of(root + "data/" + key);
    const Tensor t = vesta::empty({int64_t(bytes / uint64_t(itemsize(dtype)))}, dtype);
    if (bytes % uint64_t(itemsize(dtype)) != 0) archive.refuse("the storage '" + key + "' has a part of an element");
    archive.read(root + "data/" + key, t.impl()->data());
    return storages[key] = t;
  };
  return read_pickle(archive.text(root + "data.pkl"), storage, archive.path());
}

/// Writes the entries of a ZIP archive one after the other.
class ArchiveWriter {
 public:
  void add(const std::string& name, std::string_view contents, uint64_t alignment = 1) {
    const uint64_t offset = all_.size(), start = offset + kLocalSize + name.size();
    // An extra field of zeros, PyTorch's "FB", makes the contents begin at a multiple of the alignment.
    const uint64_t padding = alignment == 1 ? 0 : 4 + (alignment - (start + 4) % alignment) % alignment;
    VESTA_CHECK(contents.size() < 0xffffffff && offset < 0xffffffff, value,
                "save: expected less than 4 GiB for one pickle. Save tensors with torch::save.");
    const uint32_t crc = checksum(contents.data(), contents.size());
    put({kLocal, 0x0800'0014}, 4), fields_of(name, contents.size(), crc, uint16_t(padding));
    all_ += name;
    if (padding > 0) {
      all_ += "FB";
      const auto size = uint16_t(padding - 4);
      all_.append(reinterpret_cast<const char*>(&size), 2);
      all_.append(size, '\0');
    }
    all_ += contents;
    directory_.push_back({name, contents.size(), offset, crc});
  }
  std::string finished() {
    const uint64_t begin = all_.size();
    for (const Written& w : directory_) {
      put({kCentral}, 4), put({0x0014}, 2), put({0x0800'0014}, 4);
      fields_of(w.name, w.size, w.crc, 0);
      put({0, 0, 0}, 2), put({0, uint32_t(w.offset)}, 4);
      all_ += w.name;
    }
    const uint64_t length = all_.size() - begin;
    put({kEnd}, 4), put({0, 0, uint32_t(directory_.size()), uint32_t(directory_.size())}, 2);
    put({uint32_t(length), uint32_t(begin)}, 4), put({0}, 2);
    return std::move(all_);
  }

 private:
  struct Written {
    std::string name;
    uint64_t size, offset;
    uint32_t crc;
  };
  void put(std::initializer_list<uint32_t> values, size_t bytes) {
    for (const uint32_t v : values) all_.append(reinterpret_cast<const char*>(&v), bytes);
  }
  /// Writes what headers have in common: method, time, date, checksum, sizes, lengths of name and extra field.
  void fields_of(const std::string& name, uint64_t size, uint32_t crc, uint16_t extra) {
    put({0, 0, 0}, 2), put({crc, uint32_t(size), uint32_t(size)}, 4), put({uint32_t(name.size()), extra}, 2);
  }
  std::string all_;
  std::vector<Written> directory_;
};

}  // namespace

bool is_torch_archive(std::string_view start) { return start.substr(0, 4) == "PK\x03\x04"; }

Pickled load_torch_archive(const std::string& path) {
  const File file = File::open(path);
  return read_archive(Archive(&file, {}, path));
}

Pickled read_torch_archive(std::string_view bytes) { return read_archive(Archive(nullptr, bytes, "the given bytes")); }

std::string write_torch_archive(const PickledValue& value) {
  std::vector<Tensor> tensors;
  const std::string pickle = write_pickle(value, [&](const Tensor& t) {
    tensors.push_back(t);
    return std::to_string(tensors.size() - 1);
  });
  ArchiveWriter writer;
  writer.add("archive/data.pkl", pickle);
  writer.add("archive/byteorder", "little");
  for (size_t i = 0; i < tensors.size(); ++i) {
    const auto* values = static_cast<const char*>(tensors[i].impl()->data());
    writer.add("archive/data/" + std::to_string(i), {values, size_t(tensors[i].numel() * tensors[i].element_size())},
               kAlignment);
  }
  writer.add("archive/version", "3\n");
  return writer.finished();
}

}  // namespace vesta::io
