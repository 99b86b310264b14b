// Schemas of all ops, and the ops that need no pipeline.

#include <torch/csrc/stable/library.h>

#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "device.h"
#include "error.h"
#include "tensor.h"

namespace forebay::torch_ext {
namespace {

Tensor decode_image(const Tensor& encoded, const std::string& mode,
                    const std::string& orientation) {
  return op([&] {
    return to_tensor(ffi::decode_image(bytes(encoded, "encoded"), str(mode), str(orientation)));
  });
}

using Device = std::optional<torch::stable::Device>;

std::vector<ffi::Encoded> borrowed(const std::vector<Tensor>& encoded) {
  std::vector<ffi::Encoded> items;
  items.reserve(encoded.size());
  for (const Tensor& tensor : encoded) {
    const std::string name = "encoded[" + std::to_string(items.size()) + "]";
    items.push_back({bytes(tensor, name.c_str())});
  }
  return items;
}

// Items that lie end to end in one tensor: item i is encoded[offsets[i]:offsets[i + 1]].
std::vector<ffi::Encoded> unpacked(const Tensor& encoded, const Tensor& offsets) {
  const auto all = bytes(encoded, "encoded");
  const auto ends = numbers(offsets, "offsets");
  if (ends.empty())
    throw forebay::Error("V:offsets must hold one number more than there are items, got none");
  const auto wrong = [&](size_t at, int64_t got) {
    throw forebay::Error("V:offsets must ascend within 0.." + std::to_string(all.size()) +
                         ", the length of encoded, got offsets[" + std::to_string(at) +
                         "] = " + std::to_string(got));
  };
  std::vector<ffi::Encoded> items;
  items.reserve(ends.size() - 1);
  // Each number is read once: what is checked is what is used, even if somebody writes the tensor
  // meanwhile.
  int64_t begin = ends[0];
  if (begin < 0 || static_cast<uint64_t>(begin) > all.size()) wrong(0, begin);
  for (size_t i = 1; i < ends.size(); ++i) {
    const int64_t end = ends[i];
    if (end < begin || static_cast<uint64_t>(end) > all.size()) wrong(i, end);
    items.push_back({{all.data() + begin, static_cast<size_t>(end - begin)}});
    begin = end;
  }
  return items;
}

rust::Slice<const ffi::Encoded> slice(const std::vector<ffi::Encoded>& items) {
  return {items.data(), items.size()};
}

// How crops are resized; the text must outlive the options.
struct Crop {
  std::string interpolation;
  ffi::CropOptions options;

  Crop(const std::vector<int64_t>& size, const std::string& name, bool antialias, int64_t threads)
      : interpolation('"' + name + '"') {
    if (size.size() != 2) throw forebay::Error("V:size must be (height, width)");
    if (threads < 0) throw forebay::Error("V:threads must not be negative");
    options = {size[0], size[1], str(interpolation), antialias, static_cast<uint64_t>(threads)};
  }
  Crop(const Crop&) = delete;
  Crop& operator=(const Crop&) = delete;
};

std::tuple<std::vector<Tensor>, Tensor> decode_images(const std::vector<Tensor>& encoded,
                                                      const std::string& mode,
                                                      const std::string& orientation, bool strict,
                                                      int64_t threads, const Device& device) {
  return op([&] {
    if (threads < 0) throw forebay::Error("V:threads must not be negative");
    const auto items = borrowed(encoded);
    auto images =
        all_tensors(ffi::decode_images(slice(items), str(mode), str(orientation), strict,
                                       static_cast<uint64_t>(threads), device_allocator(device)));
    Tensor ok = std::move(images.back());
    images.pop_back();
    return std::tuple(std::move(images), std::move(ok));
  });
}

std::tuple<Tensor, Tensor> cropped(const std::vector<ffi::Encoded>& items, const Tensor& boxes,
                                   const std::string& orientation, bool strict, const Crop& crop,
                                   const Device& device) {
  auto tensors =
      all_tensors(ffi::decode_resized_crop(slice(items), numbers(boxes, "boxes"), str(orientation),
                                           strict, crop.options, device_allocator(device)));
  return {std::move(tensors[0]), std::move(tensors[1])};
}

std::tuple<Tensor, Tensor> decode_resized_crop(const std::vector<Tensor>& encoded,
                                               const Tensor& boxes,
                                               const std::vector<int64_t>& size,
                                               const std::string& interpolation, bool antialias,
                                               const std::string& orientation, bool strict,
                                               int64_t threads, const Device& device) {
  return op([&] {
    const Crop crop(size, interpolation, antialias, threads);
    return cropped(borrowed(encoded), boxes, orientation, strict, crop, device);
  });
}

std::tuple<Tensor, Tensor> decode_resized_crop_packed(
    const Tensor& encoded, const Tensor& offsets, const Tensor& boxes,
    const std::vector<int64_t>& size, const std::string& interpolation, bool antialias,
    const std::string& orientation, bool strict, int64_t threads, const Device& device) {
  return op([&] {
    const Crop crop(size, interpolation, antialias, threads);
    return cropped(unpacked(encoded, offsets), boxes, orientation, strict, crop, device);
  });
}

Tensor resized_crop_normalize(const Tensor& images, const Tensor& boxes, const Tensor& flip,
                              const std::vector<int64_t>& size, const std::vector<double>& mean,
                              const std::vector<double>& std, torch::headeronly::ScalarType dtype_,
                              const std::string& interpolation, bool antialias, int64_t threads) {
  return op([&] {
    const Crop crop(size, interpolation, antialias, threads);
    const ffi::ImageForm form = image_form(images);
    const auto where = numbers(boxes, "boxes");
    const Flags flips(flip, "flip");
    const ffi::NormalizeOptions normalize{
        {mean.data(), mean.size()}, {std.data(), std.size()}, dtype(dtype_)};
    if (images.is_cuda()) {
      return to_tensor(ffi::resized_crop_normalize_on_device(
          *device_tensor(images), form, where, flips.borrowed(), crop.options, normalize,
          device_allocator(static_cast<int64_t>(images.get_device_index()))));
    }
    return to_tensor(ffi::resized_crop_normalize(image_bytes(images), form, where, flips.borrowed(),
                                                 crop.options, normalize));
  });
}

std::string examine_file(const std::string& path, int64_t max_pixels) {
  return op([&] { return std::string(ffi::examine_file(raw_bytes(path), max_pixels)); });
}

void check_recipe(const std::string& recipe) {
  op([&] { ffi::check_recipe(str(recipe)); });
}

std::string system_info() {
  return op([] { return std::string(ffi::system_info()); });
}

std::string cuda_report(const std::vector<std::string>& folders, int64_t cuda_major,
                        const std::string& kernels) {
  return op(
      [&] { return std::string(ffi::cuda_report(strings(folders), cuda_major, str(kernels))); });
}

void cuda_places(const std::vector<std::string>& folders, int64_t cuda_major,
                 const std::string& kernels) {
  op([&] { ffi::cuda_places(strings(folders), cuda_major, str(kernels)); });
}

void raise_kind(int64_t kind) {
  op([&] { ffi::raise(kind); });
}

void panic() {
  op([] { ffi::panic(); });
}

}  // namespace

STABLE_TORCH_LIBRARY(forebay, library) {
  library.def("decode_image(Tensor encoded, str mode, str orientation) -> Tensor");
  library.def(
      "decode_images(Tensor[] encoded, str mode, str orientation, bool strict, int threads, *, "
      "Device? device=None) -> (Tensor[], Tensor)");
  library.def(
      "decode_resized_crop(Tensor[] encoded, Tensor boxes, int[] size, str interpolation, "
      "bool antialias, str orientation, bool strict, int threads, *, Device? device=None) "
      "-> (Tensor, Tensor)");
  library.def(
      "decode_resized_crop_packed(Tensor encoded, Tensor offsets, Tensor boxes, int[] size, "
      "str interpolation, bool antialias, str orientation, bool strict, int threads, *, "
      "Device? device=None) -> (Tensor, Tensor)");
  library.def(
      "resized_crop_normalize(Tensor images, Tensor boxes, Tensor flip, int[] size, float[] mean, "
      "float[] std, ScalarType dtype, str interpolation, bool antialias, int threads) -> Tensor");
  library.def("check_recipe(str recipe) -> ()");
  library.def("examine_file(str path, int max_pixels) -> str");
  library.def("system_info() -> str");
  library.def("cuda_report(str[] folders, int cuda_major, str kernels) -> str");
  library.def("cuda_places(str[] folders, int cuda_major, str kernels) -> ()");
  library.def("_raise(int kind) -> ()");
  library.def("_panic() -> ()");

  library.def("scan_folder(str root, str[] extensions) -> Tensor");
  library.def("scan_poll(Tensor scan, int timeout_ms) -> (str, Tensor[])");

  library.def(
      "pipeline_open(str options, Tensor names, Tensor offsets, Tensor labels, int device) -> "
      "Tensor");
  library.def("pipeline_start(Tensor handle, int epoch, int position) -> ()");
  library.def("pipeline_next(Tensor handle, int timeout_ms) -> (str, Tensor[])");
  library.def("pipeline_state(Tensor handle) -> str");
  library.def("pipeline_check_state(Tensor handle, str state) -> (int, int)");
  library.def("pipeline_feed_wanted(Tensor handle) -> int");
  library.def("pipeline_feed(Tensor handle, Tensor indices) -> ()");
  library.def("pipeline_feed_end(Tensor handle) -> ()");
  library.def("pipeline_wanted(Tensor handle, int max, int timeout_ms) -> Tensor");
  library.def("pipeline_supply(Tensor handle, int token, Tensor bytes) -> ()");
  library.def("pipeline_supply_path(Tensor handle, int token, str path) -> ()");
  library.def("pipeline_supply_fault(Tensor handle, int token, str reason) -> ()");
  library.def("pipeline_stats(Tensor handle) -> str");
  library.def("pipeline_describe(Tensor handle) -> str");
  library.def("pipeline_close(Tensor handle) -> ()");
  library.def("pipelines_left_behind(int timeout_ms) -> int");
}

STABLE_TORCH_LIBRARY_IMPL(forebay, CPU, library) {
  library.impl("decode_image", TORCH_BOX(&decode_image));
  library.impl("decode_images", TORCH_BOX(&decode_images));
  library.impl("decode_resized_crop", TORCH_BOX(&decode_resized_crop));
  library.impl("decode_resized_crop_packed", TORCH_BOX(&decode_resized_crop_packed));
  library.impl("resized_crop_normalize", TORCH_BOX(&resized_crop_normalize));
}

// The others take encoded images, which lie on the CPU wherever they are decoded to.
STABLE_TORCH_LIBRARY_IMPL(forebay, CUDA, library) {
  library.impl("resized_crop_normalize", TORCH_BOX(&resized_crop_normalize));
}

// Ops without a tensor among their arguments have no device to be dispatched on.
STABLE_TORCH_LIBRARY_IMPL(forebay, CompositeExplicitAutograd, library) {
  library.impl("check_recipe", TORCH_BOX(&check_recipe));
  library.impl("examine_file", TORCH_BOX(&examine_file));
  library.impl("system_info", TORCH_BOX(&system_info));
  library.impl("cuda_report", TORCH_BOX(&cuda_report));
  library.impl("cuda_places", TORCH_BOX(&cuda_places));
  library.impl("_raise", TORCH_BOX(&raise_kind));
  library.impl("_panic", TORCH_BOX(&panic));
}

}  // namespace forebay::torch_ext
