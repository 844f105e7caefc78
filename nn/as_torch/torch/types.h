// What every header of a libtorch program needs: the tensor, its element types, devices and options, lists, macros for
// checks, and the tags (kMean, kReflect) by which options choose.
#pragma once
#include <torch/tensor.h>

#include <torch/accessor.h>
#include <torch/arg.h>
#include <torch/enum.h>
#include <torch/exceptions.h>
#include <torch/expanding_array.h>
#include <torch/guards.h>
#include <torch/ordered_dict.h>
