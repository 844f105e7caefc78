// Files of named tensors in the safetensors format (github.com/huggingface/safetensors): 8 bytes of header length, a
// JSON header with the dtype, shape and offsets of each tensor, and their values, little-endian, without holes.
#pragma once
#include <string>
#include <utility>
#include <vector>

#include <vesta/core/io/file.h>
#include <vesta/core/tensor.h>

namespace vesta::io {

/// An ordered list of named tensors.
using NamedTensors = std::vector<std::pair<std::string, Tensor>>;
/// The metadata of a file: pairs of strings, a name and a value.
using Metadata = std::vector<std::pair<std::string, std::string>>;

/// Reads a file: its tensors in the order of the header, contiguous, on the CPU, and its metadata if `metadata` is
/// given. Everything the file claims is checked before use. Error(value) naming the file and what is wrong with it;
/// FileError if it cannot be read.
VESTA_API NamedTensors load_safetensors(const std::string& path, Metadata* metadata = nullptr);
/// Writes tensors of any layout and device; names are UTF-8, each once. The same tensors give the same bytes. The file
/// is replaced in one step: after a failure or a crash the old one is still complete.
VESTA_API void save_safetensors(const NamedTensors& tensors, const std::string& path, const Metadata& metadata = {});

}  // namespace vesta::io
