// A tour: HeaderReader takes the JSON header event by event and accepts only what the format allows; check_layout()
// compares what it says with the size of the file; only then is memory allocated.
#include <vesta/core/io/safetensors.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <nlohmann/json.hpp>
#include <set>

#include <vesta/core/ops/copy_values.h>
#include <vesta/core/shape.h>

namespace vesta::io {
namespace {

static_assert(std::endian::native == std::endian::little, "values are written as they lie in memory");

constexpr uint64_t kMaxHeader = 100'000'000;  // the reference implementation's limit
constexpr std::string_view kMetadata = "__metadata__";
constexpr std::string_view kTypes[kNumDTypes] = {"BOOL", "U8",   "I8",  "I16", "I32", "I64",
                                                 "F16",  "BF16", "F32", "F64", "C64", "C128"};

/// An entry of the header.
struct Entry {
  std::string name;
  std::string type;
  Dims shape;
  SmallVector<uint64_t, 2> offsets;
  bool has_type = false, has_shape = false, has_offsets = false;
  DType dtype = DType::float32;
};

/// A receiver of JSON events. A value in a wrong place ends the parse with a message. The file cannot cause deep
/// recursion, because nothing deeper than a list in an entry of the header is accepted.
class HeaderReader : public nlohmann::json_sax<nlohmann::json> {
 public:
  std::vector<Entry> entries;
  Metadata metadata;
  std::string problem;

  bool null() override { return wrong("null"); }
  bool boolean(bool) override { return wrong("a boolean"); }
  bool number_integer(number_integer_t) override { return wrong("a negative number"); }
  bool number_float(number_float_t, const string_t&) override { return wrong("a fraction or too large a number"); }
  bool binary(binary_t&) override { return wrong("binary data"); }
  bool number_unsigned(number_unsigned_t v) override {
    if (place_ != Place::shape && place_ != Place::offsets) return wrong("a number");
    Entry& e = entries.back();
    if (place_ == Place::offsets) {
      if (e.offsets.size() == 2) return wrong("a third offset");
      e.offsets.push_back(v);
      return true;
    }
    if (v > uint64_t(INT64_MAX) || e.shape.size() == size_t(kMaxDims)) return wrong("too large a shape");
    e.shape.push_back(int64_t(v));
    return true;
  }
  bool string(string_t& s) override {
    if (place_ == Place::metadata) {
      metadata.emplace_back(key_, s);
      return true;
    }
    if (place_ != Place::entry || key_ != "dtype") return wrong("text");
    entries.back().type = s;
    return true;
  }
  bool key(string_t& k) override {
    key_ = k;
    if (place_ == Place::header) return names_.insert(k).second || wrong("a name twice");
    if (place_ == Place::metadata) return notes_.insert(k).second || wrong("a name of metadata twice");
    Entry& e = entries.back();
    bool* seen = k == "dtype"          ? &e.has_type
                 : k == "shape"        ? &e.has_shape
                 : k == "data_offsets" ? &e.has_offsets
                                       : nullptr;
    if (!seen || *seen) return wrong("an unknown or repeated field");
    *seen = true;
    return true;
  }
  bool start_object(size_t) override {
    if (place_ == Place::nowhere) {
      place_ = Place::header;
    } else if (place_ == Place::header && key_ == kMetadata) {
      place_ = Place::metadata;
    } else if (place_ == Place::header) {
      place_ = Place::entry;
      entries.emplace_back();
      entries.back().name = key_;
    } else {
      return wrong("an object");
    }
    return true;
  }
  bool end_object() override {
    place_ = place_ == Place::header ? Place::nowhere : Place::header;
    return true;
  }
  bool start_array(size_t) override {
    if (place_ != Place::entry || key_ == "dtype") return wrong("a list");
    place_ = key_ == "shape" ? Place::shape : Place::offsets;
    return true;
  }
  bool end_array() override {
    place_ = Place::entry;
    return true;
  }
  bool parse_error(size_t at, const std::string&, const nlohmann::detail::exception&) override {
    if (problem.empty()) problem = "expected JSON, got something else at byte " + std::to_string(at) + " of the header";
    return false;
  }

 private:
  enum class Place { nowhere, header, metadata, entry, shape, offsets };
  bool wrong(const char* what) {
    problem = std::string("expected a header of the safetensors format, got ") + what + " in it";
    if (!key_.empty()) problem += " at '" + key_.substr(0, 100) + "'";
    return false;
  }
  Place place_ = Place::nowhere;
  std::string key_;
  std::set<std::string> names_, notes_;
};

[[noreturn]] void refuse(const std::string& path, const std::string& why) {
  fail(Cause::value, "load_file: ", path, ": ", why, ".");
}

struct Header {
  HeaderReader content;
  uint64_t data_begin = 0, data_size = 0;
};

void read_header(const File& file, Header& h) {
  const std::string& path = file.path();
  uint64_t size = file.size(), length = 0;
  if (size < 8) refuse(path, "expected at least 8 bytes, got " + std::to_string(size));
  file.read(&length, 8, 0);
  if (length > kMaxHeader || length > size - 8) {
    refuse(path, "expected a header of at most " + std::to_string(std::min(kMaxHeader, size - 8)) +
                     " bytes, got a length of " + std::to_string(length));
  }
  std::string text(length, '\0');
  file.read(text.data(), length, 8);
  if (text.empty() || text[0] != '{') refuse(path, "expected a header that starts with '{'");
  if (!nlohmann::json::sax_parse(text, &h.content)) refuse(path, h.content.problem);
  h.data_begin = 8 + length, h.data_size = size - h.data_begin;
}

/// Checks dtype, shape and extent of each entry, and that together they fill the data without holes or overlaps.
void check_layout(Header& h, const std::string& path) {
  std::vector<Entry*> order;
  for (Entry& e : h.content.entries) {
    std::string where = "tensor '" + e.name.substr(0, 100) + "': ";
    if (!e.has_type || !e.has_shape || !e.has_offsets || e.offsets.size() != 2) {
      refuse(path, where + "expected dtype, shape and two data_offsets");
    }
    const auto* type = std::find(std::begin(kTypes), std::end(kTypes), e.type);
    if (type == std::end(kTypes)) refuse(path, where + "unknown dtype '" + e.type.substr(0, 100) + "'");
    e.dtype = DType(type - std::begin(kTypes));
    uint64_t begin = e.offsets[0], end = e.offsets[1];
    if (begin > end || end > h.data_size) {
      refuse(path, where + "expected data_offsets within the " + std::to_string(h.data_size) + " bytes of data, got " +
                       std::to_string(begin) + " to " + std::to_string(end));
    }
    uint64_t bytes = uint64_t(itemsize(e.dtype));
    bool empty = false, overflow = false;
    for (int64_t n : e.shape) {
      if (n == 0) empty = true;
      else overflow = overflow || __builtin_mul_overflow(bytes, uint64_t(n), &bytes) || bytes > uint64_t(INT64_MAX);
    }
    if (overflow || (empty ? 0 : bytes) != end - begin) {
      refuse(path, where + "expected a shape of " + std::to_string(end - begin) + " bytes, got " +
                       vesta::text(IntSpan(e.shape)) + " of " + e.type);
    }
    order.push_back(&e);
  }
  std::sort(order.begin(), order.end(), [](Entry* a, Entry* b) {
    return std::pair(a->offsets[0], a->offsets[1]) < std::pair(b->offsets[0], b->offsets[1]);
  });
  uint64_t at = 0;
  for (Entry* e : order) {
    if (e->offsets[0] != at)
      refuse(path, "tensor '" + e->name.substr(0, 100) + "': its data overlap others or leave a gap");
    at = e->offsets[1];
  }
  if (at != h.data_size)
    refuse(path, "expected " + std::to_string(at) + " bytes of data, got " + std::to_string(h.data_size));
}

void write_all(const File& file, const std::string& header, const std::vector<const NamedTensors::value_type*>& order) {
  uint64_t length = header.size();
  file.write(&length, 8);
  file.write(header.data(), length);
  for (const auto* named : order) {
    Tensor t =
        contiguous_values(named->second.to(Device()));  // one at a time: a model of transposed weights is not doubled
    file.write(t.impl()->data(), uint64_t(t.numel() * t.element_size()));
  }
}

/// Writes the header; entries follow `order`, which is the order of the data.
std::string header_text(const std::vector<const NamedTensors::value_type*>& order, const Metadata& metadata) {
  nlohmann::ordered_json header = nlohmann::ordered_json::object();
  for (const auto& [name, value] : metadata) {
    VESTA_CHECK(!header[kMetadata.data()].contains(name), value, "save_file: expected different names, got '", name,
                "' twice (metadata).");
    header[kMetadata.data()][name] = value;
  }
  uint64_t at = 0;
  for (const auto* named : order) {
    const Tensor& t = named->second;
    uint64_t end = at + uint64_t(t.numel() * t.element_size());
    header[named->first] = {{"dtype", kTypes[int(t.dtype())]},
                            {"shape", std::vector<int64_t>(t.sizes().begin(), t.sizes().end())},
                            {"data_offsets", {at, end}}};
    at = end;
  }
  std::string text;
  try {
    text = header.dump();
  } catch (const nlohmann::json::exception&) {
    fail(Cause::value, "save_file: expected names and metadata in UTF-8.");
  }
  text.resize((text.size() + 7) / 8 * 8, ' ');  // so that the values start aligned
  VESTA_CHECK(text.size() <= kMaxHeader, value, "save_file: expected a header of at most ", kMaxHeader, " bytes, got ",
              text.size(), ".");
  return text;
}

}  // namespace

NamedTensors load_safetensors(const std::string& path, Metadata* metadata) {
  File file = File::open(path);
  Header h;
  read_header(file, h);
  check_layout(h, path);
  NamedTensors r;
  for (const Entry& e : h.content.entries) {
    Tensor t = empty_tensor(e.shape, e.dtype);
    uint64_t n = e.offsets[1] - e.offsets[0];
    file.read(t.impl()->data(), n, h.data_begin + e.offsets[0]);
    if (e.dtype == DType::bool_) {
      const auto* p = reinterpret_cast<const uint8_t*>(t.impl()->data());
      if (std::any_of(p, p + n, [](uint8_t v) { return v > 1; })) {
        refuse(path, "tensor '" + e.name.substr(0, 100) + "': expected bools of 0 and 1");
      }
    }
    r.emplace_back(e.name, std::move(t));
  }
  if (metadata) *metadata = std::move(h.content.metadata);
  return r;
}

void save_safetensors(const NamedTensors& tensors, const std::string& path, const Metadata& metadata) {
  NoGrad off;
  std::vector<const NamedTensors::value_type*> order;
  std::set<std::string_view> names{kMetadata};
  for (const auto& named : tensors) {
    VESTA_CHECK(named.second.defined(), type, "save_file: expected a tensor, got None ('", named.first, "').");
    VESTA_CHECK(names.insert(named.first).second, value, "save_file: expected names that are used once and are not '",
                kMetadata, "', got '", named.first, "'.");
    order.push_back(&named);
  }
  // widest items first: every tensor starts at a multiple of its item size
  std::stable_sort(order.begin(), order.end(), [](const auto* a, const auto* b) {
    int64_t x = a->second.element_size(), y = b->second.element_size();
    return x != y ? x > y : a->first < b->first;
  });
  std::string header = header_text(order, metadata);
  struct Context {
    const std::string& header;
    const std::vector<const NamedTensors::value_type*>& order;
  } context{header, order};
  replace_file(
      path,
      [](const File& file, void* c) {
        write_all(file, static_cast<Context*>(c)->header, static_cast<Context*>(c)->order);
      },
      &context);
}

}  // namespace vesta::io
