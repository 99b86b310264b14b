// Between torch's tensors and the core's memory.
#pragma once

#include <torch/csrc/stable/tensor.h>

#include <cstdint>
#include <string>

#include "forebay-bridge/src/lib.rs.h"
#include "rust/cxx.h"

namespace forebay::torch_ext {

using torch::stable::Tensor;

// A tensor over the core's memory, without a copy; its deleter gives the memory back.
Tensor to_tensor(ffi::TensorOut&& out);

// The elements of a contiguous uint8 CPU tensor, borrowed.
rust::Slice<const uint8_t> bytes(const Tensor& tensor, const char* name);

// The elements of a contiguous int64 CPU tensor, borrowed.
rust::Slice<const int64_t> numbers(const Tensor& tensor, const char* name);

// Any contiguous CPU tensor as labels, borrowed.
ffi::Labels labels(const Tensor& tensor);

inline rust::Str str(const std::string& text) { return rust::Str(text.data(), text.size()); }

}  // namespace forebay::torch_ext
