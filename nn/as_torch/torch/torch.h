// Everything that a program written for libtorch includes.
#pragma once
#include <torch/autograd.h>
#include <torch/composites.h>
#include <torch/context.h>
#include <torch/data.h>
#include <torch/functions.h>
#include <torch/indexing.h>
#include <torch/inplace.h>
#include <torch/nn.h>
#include <torch/optim.h>
#include <torch/serialize.h>
#include <torch/types.h>
#include <torch/unique.h>
#include <torch/upsample.h>
#include <torch/utils.h>
#include <torch/version.h>
