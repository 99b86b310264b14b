// Schemas of all ops, and the ops that need no pipeline.

#include <torch/csrc/stable/library.h>

#include <string>
#include <vector>

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

std::string system_info() {
  return op([] { return std::string(ffi::system_info()); });
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
  library.def("system_info() -> str");
  library.def("_raise(int kind) -> ()");
  library.def("_panic() -> ()");

  library.def("scan_folder(str root, str[] extensions) -> Tensor");
  library.def("scan_poll(Tensor scan, int timeout_ms) -> (str, Tensor[])");

  library.def("pipeline_open(str options, Tensor names, Tensor offsets, Tensor labels) -> Tensor");
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
}

STABLE_TORCH_LIBRARY_IMPL(forebay, CPU, library) {
  library.impl("decode_image", TORCH_BOX(&decode_image));
}

// Ops without a tensor among their arguments have no device to be dispatched on.
STABLE_TORCH_LIBRARY_IMPL(forebay, CompositeExplicitAutograd, library) {
  library.impl("system_info", TORCH_BOX(&system_info));
  library.impl("_raise", TORCH_BOX(&raise_kind));
  library.impl("_panic", TORCH_BOX(&panic));
}

}  // namespace forebay::torch_ext
