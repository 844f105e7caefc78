// Files of tensors: what round-trips, what a broken file raises, and that a failed save changes nothing.
#include <vesta/core/io/safetensors.h>
#include <vesta/core/ops/factory.h>
#include <vesta/core/ops/ops.h>

#include <catch2/catch.hpp>

#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "support.h"

using namespace vesta;
using namespace vesta::test;
namespace fs = std::filesystem;

namespace {

/// A folder that is removed at the end.
struct Folder {
  fs::path path = fs::temp_directory_path() / ("vesta_safetensors_" + std::to_string(::getpid()));
  Folder() { fs::create_directories(path); }
  ~Folder() { fs::remove_all(path); }
  std::string operator/(const char* name) const { return (path / name).string(); }
  size_t files() const { return size_t(std::distance(fs::directory_iterator(path), fs::directory_iterator())); }
};

std::string bytes_of(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

void write(const std::string& path, const std::string& header, size_t data, uint64_t length = UINT64_MAX) {
  std::ofstream out(path, std::ios::binary);
  if (length == UINT64_MAX) length = header.size();
  out.write(reinterpret_cast<const char*>(&length), 8);
  out << header << std::string(data, '\0');
}

}  // namespace

TEST_CASE("tensors of every dtype and layout come back", "[safetensors]") {
  NoGrad off;
  Folder folder;
  io::NamedTensors saved;
  for (int d = 0; d < kNumDTypes; ++d) {
    Tensor t = arange(12).remainder(2).to(DType(d)).view({3, 4});
    saved.emplace_back("plain " + std::to_string(d), t);
    saved.emplace_back("transposed " + std::to_string(d), t.t());
    saved.emplace_back("empty " + std::to_string(d), t.slice(0, 0, 0));
    saved.emplace_back("scalar " + std::to_string(d), t.select(0, 0).select(0, 1));
  }
  io::save_safetensors(saved, folder / "a", {{"note", "ünïcode \"quoted\""}});
  io::Metadata metadata;
  io::NamedTensors loaded = io::load_safetensors(folder / "a", &metadata);
  REQUIRE(metadata == io::Metadata{{"note", "ünïcode \"quoted\""}});
  REQUIRE(loaded.size() == saved.size());
  for (const auto& [name, t] : saved) {
    auto at = std::find_if(loaded.begin(), loaded.end(), [&](const auto& n) { return n.first == name; });
    REQUIRE(at != loaded.end());
    Tensor c = t.contiguous();
    REQUIRE(at->second.dtype() == t.dtype());
    REQUIRE(std::ranges::equal(at->second.sizes(), t.sizes()));
    REQUIRE(
        (t.numel() == 0 || !std::memcmp(at->second.data_ptr(), c.data_ptr(), size_t(c.numel() * c.element_size()))));
  }
  std::string first = bytes_of(folder / "a");
  std::reverse(saved.begin(), saved.end());
  io::save_safetensors(saved, folder / "a", metadata);
  REQUIRE(bytes_of(folder / "a") == first);
  REQUIRE(folder.files() == 1);
}

TEST_CASE("a broken file raises an error that names it", "[safetensors]") {
  Folder folder;
  std::string path = folder / "broken";
  auto refused = [&] { return message([&] { (void)io::load_safetensors(path); }).find("broken") != std::string::npos; };
  auto entry = [](const std::string& type, const std::string& shape, const std::string& offsets) {
    return "{\"a\":{\"dtype\":" + type + ",\"shape\":" + shape + ",\"data_offsets\":" + offsets + "}}";
  };
  write(path, entry("\"F32\"", "[2]", "[0,8]"), 8);
  REQUIRE(io::load_safetensors(path).at(0).second.numel() == 2);
  write(path, "{}", 0);
  REQUIRE(io::load_safetensors(path).empty());
  struct Case {
    std::string header;
    size_t data;
    uint64_t length = UINT64_MAX;
  };
  std::string good = entry("\"F32\"", "[2]", "[0,8]"), deep(100000, '[');
  std::string twice =
      "{\"a\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]},\"a\":{\"dtype\":\"U8\",\"shape\":[1],"
      "\"data_offsets\":[1,2]}}";
  for (const Case& c : {Case{good, 7},
                        Case{good, 9},
                        Case{good, 8, 1u << 30},
                        Case{good, 8, uint64_t(1) << 63},
                        Case{"", 0},
                        Case{"[1]", 8},
                        Case{"{nonsense", 8},
                        Case{"{\"a\":" + deep, 8},
                        Case{"{\"a\":3}", 0},
                        Case{entry("\"F31\"", "[2]", "[0,8]"), 8},
                        Case{entry("3", "[2]", "[0,8]"), 8},
                        Case{entry("\"F32\"", "[3]", "[0,8]"), 8},
                        Case{entry("\"F32\"", "[-2]", "[0,8]"), 8},
                        Case{entry("\"F32\"", "[2.5]", "[0,8]"), 8},
                        Case{entry("\"F32\"", "\"2\"", "[0,8]"), 8},
                        Case{entry("\"F32\"", "[[2]]", "[0,8]"), 8},
                        Case{entry("\"F32\"", "[8589934592,2147483649]", "[0,8]"), 8},
                        Case{entry("\"F32\"", "[2]", "[8,0]"), 8},
                        Case{entry("\"F32\"", "[2]", "[8,16]"), 16},
                        Case{entry("\"F32\"", "[2]", "[0,4,8]"), 8},
                        Case{entry("\"F32\"", "[2]", "[0,18446744073709551624]"), 8},
                        Case{"{\"a\":{\"dtype\":\"F32\"}}", 0},
                        Case{twice, 2},
                        Case{good + "x", 8},
                        Case{"{\"__metadata__\":3}", 0},
                        Case{"{\"__metadata__\":{\"a\":3}}", 0}}) {
    write(path, c.header, c.data, c.length);
    INFO(c.header.substr(0, 200));
    REQUIRE(refused());
  }
  std::ofstream(path, std::ios::binary | std::ios::trunc) << "1234567";
  REQUIRE(refused());
}

TEST_CASE("bools are checked, since any other byte is no bool", "[safetensors]") {
  Folder folder;
  std::string path = folder / "b";
  write(path, "{\"a\":{\"dtype\":\"BOOL\",\"shape\":[1],\"data_offsets\":[0,1]}}", 0);
  std::ofstream(path, std::ios::binary | std::ios::app) << '\2';
  REQUIRE(message([&] { (void)io::load_safetensors(path); }) != "no error");
}

TEST_CASE("a save that fails leaves the old file and nothing else", "[safetensors]") {
  Folder folder;
  std::string path = folder / "a";
  io::save_safetensors({{"x", ones({3})}}, path);
  std::string before = bytes_of(path);
  REQUIRE(message([&] { io::save_safetensors({{"x", zeros({3})}, {"y", Tensor()}}, path); }) != "no error");
  REQUIRE(message([&] { io::save_safetensors({{"x", zeros({3})}, {"x", zeros({3})}}, path); }) != "no error");
  REQUIRE(message([&] { io::save_safetensors({{"\xff", zeros({3})}}, path); }) != "no error");
  REQUIRE(bytes_of(path) == before);
  REQUIRE(folder.files() == 1);
  try {
    (void)io::load_safetensors(folder / "missing");
    FAIL("nothing was raised");
  } catch (const io::FileError& e) {
    REQUIRE(e.code() == ENOENT);
  }
  REQUIRE(message([&] { io::save_safetensors({}, (folder.path / "no" / "a").string()); }) != "no error");
}
