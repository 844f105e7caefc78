// The text of help() for the choice among equal elements.
#pragma once

namespace vesta::doc {

inline constexpr char _places_with_ties[] =
    "_places_with_ties(first, count, dim, largest, ties): _places_by_rank, but of equals those that 'sort', 'topk', "
    "'topk_unsorted' or 'kthvalue' of PyTorch takes on the CPU.";

inline constexpr char _mode_places[] =
    "_mode_places(dim): for each line along dim, which is kept, the index of the last of its most frequent value in "
    "the "
    "order of PyTorch's sort on the CPU; of several such values the lowest, of NaNs as of one value.";

}  // namespace vesta::doc
