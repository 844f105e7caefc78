// Files that PyTorch writes (torch.save in Python, torch::save and torch::pickle_save of libtorch): a ZIP archive with
// a pickle, data.pkl, and the values of each storage beside it, data/0 and so on, not compressed.
#pragma once
#include <string>
#include <string_view>

#include <vesta/core/io/pickle.h>

namespace vesta::io {

/// Returns whether bytes begin as a ZIP archive does.
VESTA_API bool is_torch_archive(std::string_view start);
/// Reads a file. Tensors are on the CPU; those that shared memory share it. Each length, offset and checksum that the
/// file claims is checked; Error(value) names the file. FileError if it cannot be read.
VESTA_API Pickled load_torch_archive(const std::string& path);
/// Reads the bytes of a file.
VESTA_API Pickled read_torch_archive(std::string_view bytes);
/// Returns the bytes of a file that torch.load and torch::pickle_load read; tensors are written contiguous.
VESTA_API std::string write_torch_archive(const PickledValue& value);

}  // namespace vesta::io
