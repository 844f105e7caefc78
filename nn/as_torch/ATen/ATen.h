#pragma once
#include <ATen/Dispatch.h>
#include <torch/autograd.h>
#include <torch/context.h>
#include <torch/functions.h>
#include <torch/indexing.h>
#include <torch/types.h>
