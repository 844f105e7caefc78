// The text of help() for the choice among equal elements.
#pragma once

namespace vesta::doc {

inline constexpr char _places_with_ties[] =
    "_places_with_ties(first, count, dim, largest, ties): _places_by_rank, but of equals those that 'sort', 'topk', "
    "'topk_unsorted' or 'kthvalue' of PyTorch takes on the CPU.";

}  // namespace vesta::doc
