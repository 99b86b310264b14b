//! NVIDIA GPUs as decoders and renderer; driver, nvJPEG and NVRTC are found at run time.

pub mod pack;
