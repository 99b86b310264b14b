//! Memory on its way to becoming tensors.

use crate::device::Tensor;
use crate::ffi::{DType, DeviceTensor, TensorOut};
use crate::fork;
use crate::guard::{Error, guard};
use cxx::UniquePtr;
use forebay_core::ErrorKind;
use forebay_slab::{SealedSlab, View};
use std::collections::VecDeque;
use std::mem::ManuallyDrop;
use std::sync::Arc;

/// What a poll of a pipeline or a scan brought.
#[derive(Debug, Default)]
pub(crate) struct Poll {
    info: String,
    tensors: VecDeque<TensorOut>,
}

impl Poll {
    pub(crate) fn new(info: String, tensors: Vec<TensorOut>) -> Self {
        Self { info, tensors: tensors.into() }
    }

    /// JSON; empty if there is nothing yet.
    pub(crate) fn info(&self) -> &str {
        &self.info
    }

    /// Number of tensors that wait to be taken.
    pub(crate) fn tensors(&self) -> usize {
        self.tensors.len()
    }

    /// Takes the next tensor. A C++ caller that moved tensors out of a `Vec` would leave null
    /// boxes behind, which Rust would then drop.
    pub(crate) fn take(&mut self) -> Result<TensorOut, Error> {
        guard(|| {
            let none = || Error::new(ErrorKind::Internal, "all tensors of the poll were taken");
            self.tensors.pop_front().ok_or_else(none)
        })
    }
}

/// What a tensor's deleter gives back.
#[derive(Debug)]
pub(crate) struct Memory {
    owner: ManuallyDrop<Owner>,
    data: *mut u8,
    forks: u64,
}

#[derive(Debug)]
#[allow(dead_code, reason = "owners are only dropped")]
enum Owner {
    Slab(Arc<SealedSlab>),
    Bytes(Vec<u8>),
    Numbers(Vec<i64>),
    Device(Tensor),
    Taken,
}

impl Memory {
    fn new(owner: Owner, data: *mut u8) -> Self {
        Self { owner: ManuallyDrop::new(owner), data, forks: fork::generation() }
    }

    /// The first byte; null if the memory is torch's.
    pub(crate) fn data(&self) -> *mut u8 {
        self.data
    }

    /// torch's own tensor, or null.
    pub(crate) fn take_device_tensor(&mut self) -> Result<UniquePtr<DeviceTensor>, Error> {
        guard(|| {
            if !matches!(*self.owner, Owner::Device(_)) {
                return Ok(UniquePtr::null());
            }
            Ok(match std::mem::replace(&mut *self.owner, Owner::Taken) {
                Owner::Device(tensor) => tensor.into_inner(),
                _ => UniquePtr::null(),
            })
        })
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        // In a forked child the pool's lock may be held by a thread that is not there.
        if self.forks == fork::generation() {
            // SAFETY: the owner is dropped here and nowhere else, and never used again.
            unsafe { ManuallyDrop::drop(&mut self.owner) };
        }
    }
}

// SAFETY: `data` points into memory that `owner` keeps, and every owner is `Send`.
unsafe impl Send for Memory {}

impl From<forebay_core::DType> for DType {
    fn from(dtype: forebay_core::DType) -> Self {
        use forebay_core::DType as Core;
        match dtype {
            Core::Bool => Self::Bool,
            Core::UInt8 => Self::UInt8,
            Core::Int64 => Self::Int64,
            Core::Float16 => Self::Float16,
            Core::BFloat16 => Self::BFloat16,
            Core::Float32 => Self::Float32,
            Core::Float64 => Self::Float64,
        }
    }
}

pub(crate) fn signed(lengths: &[usize]) -> Vec<i64> {
    let sign = |&length| i64::try_from(length).expect("lengths were checked against isize");
    lengths.iter().map(sign).collect()
}

/// Strides of row-major memory.
pub(crate) fn contiguous<T>(sizes: &[T]) -> Vec<T>
where
    T: Copy + Ord + From<u8> + std::ops::Mul<Output = T>,
{
    let one = T::from(1);
    let mut strides = vec![one; sizes.len()];
    for dim in (1..sizes.len()).rev() {
        strides[dim - 1] = strides[dim] * sizes[dim].max(one);
    }
    strides
}

/// torch's own tensor, written.
pub(crate) fn from_device(tensor: Tensor) -> TensorOut {
    TensorOut {
        dtype: DType::UInt8,
        sizes: Vec::new(),
        strides: Vec::new(),
        memory: Box::new(Memory::new(Owner::Device(tensor), std::ptr::null_mut())),
    }
}

/// A view of a sealed slab.
pub(crate) fn from_view(slab: &Arc<SealedSlab>, view: &View) -> TensorOut {
    TensorOut {
        dtype: view.dtype().into(),
        sizes: signed(view.shape()),
        strides: signed(view.strides()),
        memory: Box::new(Memory::new(Owner::Slab(Arc::clone(slab)), view.ptr().as_ptr())),
    }
}

/// Bytes of any element type that is one byte wide.
pub(crate) fn from_bytes(mut bytes: Vec<u8>, dtype: DType, sizes: Vec<i64>) -> TensorOut {
    let data = bytes.as_mut_ptr();
    TensorOut {
        dtype,
        strides: contiguous(&sizes),
        sizes,
        memory: Box::new(Memory::new(Owner::Bytes(bytes), data)),
    }
}

/// An int64 tensor.
pub(crate) fn from_numbers(mut numbers: Vec<i64>, sizes: Vec<i64>) -> TensorOut {
    let data = numbers.as_mut_ptr().cast();
    let strides = contiguous(&sizes);
    TensorOut {
        dtype: DType::Int64,
        strides,
        sizes,
        memory: Box::new(Memory::new(Owner::Numbers(numbers), data)),
    }
}

/// A vector of int64.
pub(crate) fn vector(numbers: Vec<i64>) -> TensorOut {
    let len = i64::try_from(numbers.len()).expect("a vector's length fits an i64");
    from_numbers(numbers, vec![len])
}
