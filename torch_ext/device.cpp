#include "device.h"

#include <dlfcn.h>
#include <torch/csrc/stable/accelerator.h>

#include <string>
#include <utility>

#include "forebay/error.h"
#include "tensor.h"

namespace forebay::torch_ext {
namespace {

using GetStream = AOTITorchError (*)(int32_t, void**);

// libtorch_cuda is never linked: it is there if this torch has CUDA, and torch has loaded it then.
GetStream find_get_stream() {
  void* library = dlopen("libtorch_cuda.so", RTLD_LAZY | RTLD_NOLOAD);
  void* symbol = library ? dlsym(library, "aoti_torch_get_current_cuda_stream") : nullptr;
  if (!symbol) throw forebay::Error("N:this torch was built without CUDA");
  return reinterpret_cast<GetStream>(symbol);
}

class TorchTensor final : public DeviceTensor {
 public:
  explicit TorchTensor(torch::stable::Tensor tensor) : tensor_(std::move(tensor)) {}

  uint64_t address() const override { return reinterpret_cast<uint64_t>(tensor_.const_data_ptr()); }

  const torch::stable::Tensor& tensor() const { return tensor_; }

 private:
  torch::stable::Tensor tensor_;
};

class TorchAllocator final : public DeviceAllocator {
 public:
  explicit TorchAllocator(int32_t index) : index_(index), get_stream_(find_get_stream()) {}

  uint32_t index() const override { return static_cast<uint32_t>(index_); }

  std::unique_ptr<DeviceTensor> allocate(ffi::DType dtype, rust::Slice<const int64_t> sizes,
                                         rust::Slice<const int64_t> strides) const override {
    AtenTensorHandle handle = nullptr;
    const AOTITorchError error = aoti_torch_empty_strided(
        static_cast<int64_t>(sizes.size()), sizes.data(), strides.data(),
        static_cast<int32_t>(scalar_type(dtype)), aoti_torch_device_type_cuda(), index_, &handle);
    // The shim has written what torch said to standard error, and loses its type.
    if (error != AOTI_TORCH_SUCCESS) return nullptr;
    return std::make_unique<TorchTensor>(torch::stable::Tensor(handle));
  }

  uint64_t current_stream() const override {
    void* stream = nullptr;
    if (get_stream_(index_, &stream) != AOTI_TORCH_SUCCESS) {
      throw forebay::Error("G:torch does not tell its current stream of cuda:" +
                           std::to_string(index_));
    }
    return reinterpret_cast<uint64_t>(stream);
  }

 private:
  int32_t index_;
  GetStream get_stream_;
};

}  // namespace

std::unique_ptr<DeviceAllocator> device_allocator(int64_t index) {
  if (index < 0) return nullptr;
  return std::make_unique<TorchAllocator>(static_cast<int32_t>(index));
}

std::unique_ptr<DeviceAllocator> device_allocator(
    const std::optional<torch::stable::Device>& device) {
  if (!device || device->is_cpu()) return nullptr;
  if (!device->is_cuda()) throw forebay::Error("N:device must be a CPU or CUDA device");
  if (device->has_index()) return device_allocator(static_cast<int64_t>(device->index()));
  find_get_stream();  // Without CUDA the current device may be another accelerator's.
  return device_allocator(
      static_cast<int64_t>(torch::stable::accelerator::getCurrentDeviceIndex()));
}

std::unique_ptr<DeviceTensor> device_tensor(const torch::stable::Tensor& tensor) {
  return std::make_unique<TorchTensor>(tensor);
}

torch::stable::Tensor tensor_of(const DeviceTensor& tensor) {
  return static_cast<const TorchTensor&>(tensor).tensor();
}

}  // namespace forebay::torch_ext
