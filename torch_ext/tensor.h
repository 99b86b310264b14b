// Between torch's tensors and the core's memory.
#pragma once

#include <torch/csrc/stable/tensor.h>
#include <torch/headeronly/core/ScalarType.h>

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "forebay-bridge/src/lib.rs.h"
#include "rust/cxx.h"

namespace forebay::torch_ext {

using torch::stable::Tensor;

// A tensor over the core's memory, without a copy, whose deleter gives the memory back; or torch's
// own tensor, which the core has written.
Tensor to_tensor(ffi::TensorOut&& out);

// The elements of a contiguous uint8 CPU tensor, borrowed.
rust::Slice<const uint8_t> bytes(const Tensor& tensor, const char* name);

// The elements of a contiguous int64 CPU tensor, borrowed.
rust::Slice<const int64_t> numbers(const Tensor& tensor, const char* name);

// The elements of a contiguous bool CPU tensor, as bytes that are 0 or 1: a tensor may hold others
// (`uint8.view(torch.bool)`), and another thread may write it meanwhile, neither of which a Rust
// bool survives.
class Flags {
 public:
  Flags(const Tensor& tensor, const char* name);
  rust::Slice<const bool> borrowed() const { return {values_.get(), count_}; }

 private:
  size_t count_;
  std::unique_ptr<bool[]> values_;
};

// How a (N, 3, H, W) uint8 tensor, contiguous or channels_last, lies in memory of any device.
ffi::ImageForm image_form(const Tensor& images);

// The elements of such a tensor on the CPU, borrowed.
rust::Slice<const uint8_t> image_bytes(const Tensor& images);

// The core's name of an element type, and torch's.
ffi::DType dtype(torch::headeronly::ScalarType type);
torch::headeronly::ScalarType scalar_type(ffi::DType dtype);

// All tensors of a poll, in order.
std::vector<Tensor> all_tensors(rust::Box<ffi::Poll> poll);

// Any contiguous CPU tensor as labels, borrowed.
ffi::Labels labels(const Tensor& tensor);

// A path's bytes; they need not be UTF-8.
inline rust::Slice<const uint8_t> raw_bytes(const std::string& text) {
  return {reinterpret_cast<const uint8_t*>(text.data()), text.size()};
}

inline rust::Vec<rust::String> strings(const std::vector<std::string>& texts) {
  rust::Vec<rust::String> list;
  for (const auto& text : texts) list.push_back(rust::String(text));
  return list;
}

inline rust::Str str(const std::string& text) { return rust::Str(text.data(), text.size()); }

}  // namespace forebay::torch_ext
