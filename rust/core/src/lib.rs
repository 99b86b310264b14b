//! The meaning of Forebay: what samples, recipes, plans, orders and states are, and the ports
//! through which the other rooms serve them. Numbers in, numbers out.
//!
//! **Invariants**
//! - No I/O, no threads, no clock, no unsafe code.
//! - All randomness lives here (RNG-1); backends are pure functions of bytes and plans.
#![forbid(unsafe_code)]

pub mod coeffs;
mod error;
mod image;
mod mix;
pub mod noise;
pub mod order;
mod plan;
pub mod ports;
pub mod recipe;
pub mod rng;
mod sample;
pub mod state;

pub use error::{ErrorKind, HasKind};
pub use image::{
    Channels, DType, Format, ImageMeta, Layout, Limits, Orientation, Region, Sampling, Size,
};
pub use mix::{Mix, Mixing};
pub use plan::{
    Axis, Blend, ColorOp, Erase, Fill, Gather, ImagePlan, Layer, Mixture, Normalize, Pass, Reduce,
    Taps, Warp, Write,
};
pub use recipe::{FieldPlan, Planner, Recipe, RecipeError, RecipeSpec};
pub use sample::{Bytes, Field, FieldKind, FieldSpec, Record, Schema, Value};
