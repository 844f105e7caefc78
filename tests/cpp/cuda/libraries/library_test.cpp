// Where NVIDIA's libraries are looked for when Python's packages of several versions of CUDA are installed.
#include <vesta/cuda/lib/library.h>

#include <unistd.h>

#include <catch2/catch.hpp>
#include <filesystem>
#include <string>
#include <vector>

namespace {

namespace fs = std::filesystem;
using Names = std::vector<std::string>;

/// A folder of packages as pip leaves it, removed at the end.
struct SitePackages {
  fs::path root = fs::temp_directory_path() / ("vesta_packages_" + std::to_string(getpid()));
  explicit SitePackages(const Names& packages) {
    for (const std::string& name : packages) fs::create_directories(root / "nvidia" / name / "lib");
    fs::create_directories(root / "nvidia" / "headers_only" / "include");
  }
  ~SitePackages() { fs::remove_all(root); }

  /// Returns the names of the packages whose folders are searched, in order.
  Names searched(int major) const {
    Names names;
    for (const fs::path folder : vesta::cuda::package_folders(root.string(), major)) {
      REQUIRE(folder.filename() == "lib");
      names.push_back(folder.parent_path().filename().string());
    }
    return names;
  }
};

TEST_CASE("of several versions of a library that of the runtime's major version is found first", "[cuda]") {
  const SitePackages both({"cublas", "cudnn", "cu12", "cu13", "nccl"});  // sorted by name, cublas would be before cu13
  CHECK(both.searched(13) == Names{"cu13", "cublas", "cudnn", "nccl", "cu12"});
  CHECK(both.searched(12) == Names{"cu12", "cublas", "cudnn", "nccl", "cu13"});
}

TEST_CASE("packages of another version are searched where there is no other", "[cuda]") {
  CHECK(SitePackages({"cublas", "cudnn"}).searched(13) == Names{"cublas", "cudnn"});
  CHECK(SitePackages({"cu13", "cudnn"}).searched(12) == Names{"cudnn", "cu13"});
  CHECK(vesta::cuda::package_folders("/nowhere", 13).empty());
}

}  // namespace
