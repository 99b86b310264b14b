#include "tensor.h"

#include <torch/csrc/stable/ops.h>
#include <torch/headeronly/core/ScalarType.h>

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "device.h"
#include "error.h"

namespace forebay::torch_ext {
namespace {

using torch::headeronly::ScalarType;

// CPU tensors have device index -1 in the C shim.
const torch::stable::Device kCpu(torch::headeronly::DeviceType::CPU, -1);

void check(const Tensor& tensor, ScalarType type, const char* type_name, const char* name) {
  const std::string prefix = std::string(name) + ": ";
  if (!tensor.is_cpu()) reject(prefix + "expected a CPU tensor");
  if (!tensor.is_contiguous()) reject(prefix + "expected a contiguous tensor; call .contiguous()");
  if (tensor.scalar_type() != type) reject(prefix + "expected dtype torch." + type_name);
}

template <class T>
rust::Slice<const T> slice(const Tensor& tensor) {
  return {static_cast<const T*>(tensor.const_data_ptr()), static_cast<size_t>(tensor.numel())};
}

}  // namespace

ScalarType scalar_type(ffi::DType dtype) {
  switch (dtype) {
    case ffi::DType::Bool: return ScalarType::Bool;
    case ffi::DType::UInt8: return ScalarType::Byte;
    case ffi::DType::UInt16: return ScalarType::UInt16;
    case ffi::DType::Int64: return ScalarType::Long;
    case ffi::DType::Float16: return ScalarType::Half;
    case ffi::DType::BFloat16: return ScalarType::BFloat16;
    case ffi::DType::Float32: return ScalarType::Float;
    case ffi::DType::Float64: return ScalarType::Double;
  }
  throw forebay::Error("X:the core sent an element type that is unknown here");
}

Tensor to_tensor(ffi::TensorOut&& out) {
  if (const auto tensor = out.memory->take_device_tensor()) return tensor_of(*tensor);
  // The deleter is a copyable callable by torch's contract, the box is move-only: share it.
  auto memory = std::make_shared<rust::Box<ffi::Memory>>(std::move(out.memory));
  void* data = (*memory)->data();
  const std::vector<int64_t> sizes(out.sizes.begin(), out.sizes.end());
  const std::vector<int64_t> strides(out.strides.begin(), out.strides.end());
  return torch::stable::from_blob(data, sizes, strides, kCpu, scalar_type(out.dtype),
                                  [memory](void*) mutable { memory.reset(); });
}

rust::Slice<const uint8_t> bytes(const Tensor& tensor, const char* name) {
  check(tensor, ScalarType::Byte, "uint8", name);
  return slice<uint8_t>(tensor);
}

rust::Slice<const int64_t> numbers(const Tensor& tensor, const char* name) {
  check(tensor, ScalarType::Long, "int64", name);
  return slice<int64_t>(tensor);
}

ffi::DType dtype(torch::headeronly::ScalarType type) {
  switch (type) {
    case ScalarType::Bool: return ffi::DType::Bool;
    case ScalarType::Byte: return ffi::DType::UInt8;
    case ScalarType::Long: return ffi::DType::Int64;
    case ScalarType::Half: return ffi::DType::Float16;
    case ScalarType::BFloat16: return ffi::DType::BFloat16;
    case ScalarType::Float: return ffi::DType::Float32;
    case ScalarType::Double: return ffi::DType::Float64;
    default: break;
  }
  reject("expected dtype bool, uint8, int64, float16, bfloat16, float32 or float64");
}

Flags::Flags(const Tensor& tensor, const char* name) {
  check(tensor, ScalarType::Bool, "bool", name);
  const auto elements = slice<uint8_t>(tensor);
  count_ = elements.size();
  values_ = std::make_unique<bool[]>(count_);
  std::transform(elements.begin(), elements.end(), values_.get(),
                 [](uint8_t element) { return element != 0; });
}

ffi::ImageForm image_form(const Tensor& images) {
  if (images.dim() != 4) reject("images: expected (N, 3, H, W)");
  const auto sizes = images.sizes();
  const std::array<int64_t, 4> shape{sizes[0], sizes[1], sizes[2], sizes[3]};
  const auto [count, channels, height, width] = shape;
  // Rows of interleaved channels: what channels_last means, and what a batch of HWC images
  // permuted to (N, C, H, W) is.
  const std::array<int64_t, 4> strides{height * width * channels, 1, width * channels, channels};
  bool interleaved = !images.is_contiguous();
  for (int dim = 0; dim < 4; ++dim) {
    interleaved = interleaved && (shape[dim] == 1 || images.stride(dim) == strides[dim]);
  }
  if (images.scalar_type() != ScalarType::Byte) reject("images: expected dtype torch.uint8");
  if (!interleaved && !images.is_contiguous()) {
    reject("images: expected a contiguous or channels_last tensor; call .contiguous()");
  }
  return {shape, interleaved};
}

rust::Slice<const uint8_t> image_bytes(const Tensor& images) {
  if (!images.is_cpu()) reject("images: expected a CPU tensor");
  return slice<uint8_t>(images);
}

std::vector<Tensor> all_tensors(rust::Box<ffi::Poll> poll) {
  std::vector<Tensor> tensors;
  tensors.reserve(poll->tensors());
  while (poll->tensors() > 0) tensors.push_back(to_tensor(poll->take()));
  return tensors;
}

ffi::Labels labels(const Tensor& tensor) {
  const ScalarType type = tensor.scalar_type();
  check(tensor, type, "", "labels");
  const auto sizes = tensor.sizes();
  const size_t width = tensor.element_size();
  return ffi::Labels{
      dtype(type),
      {sizes.data(), sizes.size()},
      {static_cast<const uint8_t*>(tensor.const_data_ptr()),
       static_cast<size_t>(tensor.numel()) * width},
  };
}

}  // namespace forebay::torch_ext
