// Ops on pipelines and scans: a handle tensor in, the core called, tensors out.

#include <torch/csrc/stable/library.h>
#include <torch/csrc/stable/ops.h>

#include <array>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "device.h"
#include "error.h"
#include "tensor.h"

namespace forebay::torch_ext {
namespace {

using Handle = std::array<int64_t, 3>;
using Polled = std::tuple<std::string, std::vector<Tensor>>;
using Slice = rust::Slice<const int64_t>;

// The handle as a tensor; `close` runs when the last reference to its storage is gone.
Tensor handle_tensor(const Handle& handle, void (*close)(Slice)) {
  auto owned = std::make_shared<Handle>(handle);
  const auto deleter = [owned, close](void*) {
    try {
      close(Slice(owned->data(), owned->size()));
    } catch (const rust::Error&) {
      // A deleter has nobody to tell; closing a handle of ours does not fail.
    }
  };
  const std::array<int64_t, 1> sizes{3};
  const std::array<int64_t, 1> strides{1};
  const torch::stable::Device cpu(torch::headeronly::DeviceType::CPU, -1);
  return torch::stable::from_blob(owned->data(), sizes, strides, cpu,
                                  torch::headeronly::ScalarType::Long, deleter);
}

Polled polled(rust::Box<ffi::Poll> poll) {
  std::string info(poll->info());
  return {std::move(info), all_tensors(std::move(poll))};
}

uint64_t natural(int64_t value, const char* name) {
  if (value < 0) throw forebay::Error(std::string("V:") + name + " must not be negative");
  return static_cast<uint64_t>(value);
}

Tensor scan_folder(const std::string& root, const std::vector<std::string>& extensions) {
  return op([&] {
    return handle_tensor(ffi::scan_folder(str(root), strings(extensions)), &ffi::scan_close);
  });
}

Polled scan_poll(const Tensor& scan, int64_t timeout_ms) {
  return op([&] {
    return polled(ffi::scan_poll(numbers(scan, "scan"), natural(timeout_ms, "timeout_ms")));
  });
}

Tensor pipeline_open(const std::string& options, const Tensor& names, const Tensor& offsets,
                     const Tensor& label_tensor, int64_t device) {
  return op([&] {
    const auto handle =
        ffi::pipeline_open(str(options), bytes(names, "names"), numbers(offsets, "offsets"),
                           labels(label_tensor), device_allocator(device));
    return handle_tensor(handle, &ffi::pipeline_close);
  });
}

void pipeline_start(const Tensor& handle, int64_t epoch, int64_t position) {
  op([&] {
    ffi::pipeline_start(numbers(handle, "handle"), natural(epoch, "epoch"),
                        natural(position, "position"));
  });
}

Polled pipeline_next(const Tensor& handle, int64_t timeout_ms) {
  return op([&] {
    return polled(ffi::pipeline_next(numbers(handle, "handle"), natural(timeout_ms, "timeout_ms")));
  });
}

std::string pipeline_state(const Tensor& handle) {
  return op([&] { return std::string(ffi::pipeline_state(numbers(handle, "handle"))); });
}

std::tuple<int64_t, int64_t> pipeline_check_state(const Tensor& handle, const std::string& state) {
  return op([&] {
    const auto at = ffi::pipeline_check_state(numbers(handle, "handle"), str(state));
    return std::tuple(static_cast<int64_t>(at[0]), static_cast<int64_t>(at[1]));
  });
}

int64_t pipeline_feed_wanted(const Tensor& handle) {
  return op(
      [&] { return static_cast<int64_t>(ffi::pipeline_feed_wanted(numbers(handle, "handle"))); });
}

void pipeline_feed(const Tensor& handle, const Tensor& indices) {
  op([&] { ffi::pipeline_feed(numbers(handle, "handle"), numbers(indices, "indices")); });
}

void pipeline_feed_end(const Tensor& handle) {
  op([&] { ffi::pipeline_feed_end(numbers(handle, "handle")); });
}

Tensor pipeline_wanted(const Tensor& handle, int64_t max, int64_t timeout_ms) {
  return op([&] {
    return to_tensor(ffi::pipeline_wanted(numbers(handle, "handle"), natural(max, "max"),
                                          natural(timeout_ms, "timeout_ms")));
  });
}

void pipeline_supply(const Tensor& handle, int64_t token, const Tensor& encoded) {
  op([&] { ffi::pipeline_supply(numbers(handle, "handle"), token, bytes(encoded, "bytes")); });
}

void pipeline_supply_path(const Tensor& handle, int64_t token, const std::string& path) {
  op([&] { ffi::pipeline_supply_path(numbers(handle, "handle"), token, raw_bytes(path)); });
}

void pipeline_supply_fault(const Tensor& handle, int64_t token, const std::string& reason) {
  op([&] { ffi::pipeline_supply_fault(numbers(handle, "handle"), token, str(reason)); });
}

std::string pipeline_stats(const Tensor& handle) {
  return op([&] { return std::string(ffi::pipeline_stats(numbers(handle, "handle"))); });
}

std::string pipeline_describe(const Tensor& handle) {
  return op([&] { return std::string(ffi::pipeline_describe(numbers(handle, "handle"))); });
}

void pipeline_close(const Tensor& handle) {
  op([&] { ffi::pipeline_close(numbers(handle, "handle")); });
}

int64_t pipelines_left_behind(int64_t timeout_ms) {
  return op([&] {
    return static_cast<int64_t>(ffi::pipelines_left_behind(natural(timeout_ms, "timeout_ms")));
  });
}

}  // namespace

STABLE_TORCH_LIBRARY_IMPL(forebay, CompositeExplicitAutograd, library) {
  library.impl("scan_folder", TORCH_BOX(&scan_folder));
  library.impl("scan_poll", TORCH_BOX(&scan_poll));
  library.impl("pipeline_open", TORCH_BOX(&pipeline_open));
  library.impl("pipeline_start", TORCH_BOX(&pipeline_start));
  library.impl("pipeline_next", TORCH_BOX(&pipeline_next));
  library.impl("pipeline_state", TORCH_BOX(&pipeline_state));
  library.impl("pipeline_check_state", TORCH_BOX(&pipeline_check_state));
  library.impl("pipeline_feed_wanted", TORCH_BOX(&pipeline_feed_wanted));
  library.impl("pipeline_feed", TORCH_BOX(&pipeline_feed));
  library.impl("pipeline_feed_end", TORCH_BOX(&pipeline_feed_end));
  library.impl("pipeline_wanted", TORCH_BOX(&pipeline_wanted));
  library.impl("pipeline_supply", TORCH_BOX(&pipeline_supply));
  library.impl("pipeline_supply_path", TORCH_BOX(&pipeline_supply_path));
  library.impl("pipeline_supply_fault", TORCH_BOX(&pipeline_supply_fault));
  library.impl("pipeline_stats", TORCH_BOX(&pipeline_stats));
  library.impl("pipeline_describe", TORCH_BOX(&pipeline_describe));
  library.impl("pipeline_close", TORCH_BOX(&pipeline_close));
  library.impl("pipelines_left_behind", TORCH_BOX(&pipelines_left_behind));
}

}  // namespace forebay::torch_ext
