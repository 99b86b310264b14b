//! Transforms of whole batches: what users write, and the draws of one batch.

use super::check::{RecipeError, check_probabilities, check_probability};
use super::resolve::weighted;
use crate::rng::{Draws, EpochKey};
use crate::{Blend, DType, Mix, Mixing, Region, Size};
use serde::Deserialize;

/// The draw group of whole batches; fields have lower ones.
const GROUP: u16 = u16::MAX;

/// One transform of a batch, which comes after those of its images.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(tag = "name", deny_unknown_fields)]
#[allow(missing_docs, reason = "names and arguments are torchvision.transforms.v2's")]
pub enum BatchTransform {
    MixUp {
        alpha: f64,
    },
    CutMix {
        alpha: f64,
    },
    /// All of them, or none.
    RandomApply {
        transforms: Vec<BatchTransform>,
        p: f64,
    },
    /// One of them, each with its probability.
    RandomChoice {
        transforms: Vec<BatchTransform>,
        p: Vec<f64>,
    },
}

impl BatchTransform {
    fn name(&self) -> &'static str {
        match self {
            Self::MixUp { .. } => "MixUp",
            Self::CutMix { .. } => "CutMix",
            Self::RandomApply { .. } => "RandomApply",
            Self::RandomChoice { .. } => "RandomChoice",
        }
    }

    fn check(&self, dtype: DType) -> Result<(), String> {
        let all = |transforms: &[Self]| {
            if transforms.is_empty() {
                return Err("expected at least one transform, got none".to_owned());
            }
            transforms.iter().try_for_each(|each| {
                each.check(dtype).map_err(|problem| format!("{}: {problem}", each.name()))
            })
        };
        match self {
            Self::MixUp { alpha } | Self::CutMix { alpha } => {
                if !alpha.is_finite() || *alpha <= 0.0 {
                    return Err(format!("alpha must be above 0, got {alpha}"));
                }
                if matches!(self, Self::MixUp { .. }) && dtype == DType::UInt8 {
                    return Err("mixes floats, and the batch is uint8; put Normalize or \
                                ToDtype(torch.float32, scale=True) before it"
                        .to_owned());
                }
                Ok(())
            }
            Self::RandomApply { transforms, p } => {
                check_probability(*p)?;
                all(transforms)
            }
            Self::RandomChoice { transforms, p } => {
                check_probabilities(p, transforms.len())?;
                all(transforms)
            }
        }
    }

    fn draw(&self, draws: &mut Draws, size: Size, drawn: &mut Vec<Mixing>) {
        match self {
            Self::MixUp { alpha } => {
                let weight = draws.beta(*alpha);
                drawn.push(Mixing { mix: Mix::Blend(Blend::new(weight)), weight });
            }
            Self::CutMix { alpha } => {
                let weight = draws.beta(*alpha);
                let at = [draws.below(size.width.into()), draws.below(size.height.into())];
                let region = cut(weight, at, size);
                let part = region.size().pixels() as f64 / size.pixels() as f64;
                drawn.push(Mixing { mix: Mix::Paste(region), weight: 1.0 - part });
            }
            Self::RandomApply { transforms, p } => {
                if draws.bernoulli(*p) {
                    for each in transforms {
                        each.draw(draws, size, drawn);
                    }
                }
            }
            Self::RandomChoice { transforms, p } => {
                transforms[weighted(p, draws)].draw(draws, size, drawn);
            }
        }
    }
}

/// torchvision's box: around `center`, of the image's proportions and of what `weight` leaves of
/// its area, as far as it lies in the image.
#[allow(clippy::cast_possible_truncation, reason = "as Python's int; sides are below 2^16")]
fn cut(weight: f64, center: [u64; 2], size: Size) -> Region {
    let half = 0.5 * (1.0 - weight).max(0.0).sqrt();
    let span = |center: u64, len: u32| {
        let (center, reach) = (center.cast_signed(), (half * f64::from(len)) as i64);
        let end = |at: i64| u32::try_from(at.clamp(0, len.into())).expect("within the image");
        (end(center - reach), end(center + reach))
    };
    let [(left, right), (top, bottom)] =
        [span(center[0], size.width), span(center[1], size.height)];
    Region { x: left, y: top, width: right - left, height: bottom - top }
}

/// Checks the list; `places` transforms come before it.
pub(super) fn check(
    transforms: &[BatchTransform],
    places: usize,
    dtype: DType,
) -> Result<(), RecipeError> {
    transforms.iter().enumerate().try_for_each(|(number, each)| {
        each.check(dtype).map_err(|problem| RecipeError::Argument {
            place: places + number,
            name: each.name(),
            problem,
        })
    })
}

/// Draws for the batch whose first sample is at `position`, of images of `size`.
pub(super) fn draw(
    transforms: &[BatchTransform],
    key: EpochKey,
    position: u64,
    size: Size,
) -> Vec<Mixing> {
    let mut drawn = Vec::new();
    for (place, each) in transforms.iter().enumerate() {
        let place = u16::try_from(place).unwrap_or(u16::MAX);
        each.draw(&mut key.draws(position, place, GROUP), size, &mut drawn);
    }
    drawn
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drawn(transforms: &[BatchTransform], count: u64) -> Vec<Vec<Mixing>> {
        let size = Size { width: 40, height: 30 };
        let key = EpochKey::new(5, 0);
        (0..count).map(|position| draw(transforms, key, position, size)).collect()
    }

    #[test]
    fn a_box_leaves_the_image_what_its_label_says() {
        for mixes in drawn(&[BatchTransform::CutMix { alpha: 1.0 }], 2_000) {
            let [Mixing { mix: Mix::Paste(region), weight }] = mixes[..] else {
                panic!("{mixes:?}")
            };
            assert!(region.x + region.width <= 40 && region.y + region.height <= 30, "{region:?}");
            let rest = 1200.0 - f64::from(region.width) * f64::from(region.height);
            assert!((weight - rest / 1200.0).abs() < 1e-12);
        }
    }

    #[test]
    fn boxes_are_torchvisions() {
        // CutMix.make_params with these draws: r_x, r_y and lam.
        let size = Size { width: 40, height: 30 };
        let region = |x, y, width, height| Region { x, y, width, height };
        assert_eq!(cut(0.75, [20, 15], size), region(10, 8, 20, 14));
        assert_eq!(cut(0.75, [3, 29], size), region(0, 22, 13, 8));
        assert_eq!(cut(1.0, [3, 29], size), region(3, 29, 0, 0));
        assert_eq!(cut(0.0, [0, 0], size), region(0, 0, 20, 15));
    }

    #[test]
    fn lists_are_drawn_by_their_probabilities() {
        let both =
            vec![BatchTransform::MixUp { alpha: 0.2 }, BatchTransform::CutMix { alpha: 1.0 }];
        let one = BatchTransform::RandomChoice { transforms: both.clone(), p: vec![0.25, 0.75] };
        let blends = |all: &[Vec<Mixing>]| {
            let is_blend = |mixing: &&Mixing| matches!(mixing.mix, Mix::Blend(_));
            all.iter().flatten().filter(is_blend).count()
        };
        let all = drawn(&[one], 4_000);
        assert!(all.iter().all(|mixes| mixes.len() == 1));
        assert!((900..1100).contains(&blends(&all)), "{}", blends(&all));
        let some = BatchTransform::RandomApply { transforms: both, p: 0.5 };
        let all = drawn(&[some], 4_000);
        assert!(all.iter().all(|mixes| mixes.is_empty() || mixes.len() == 2));
        assert!((1900..2100).contains(&blends(&all)), "{}", blends(&all));
    }

    #[test]
    fn what_cannot_be_is_refused_with_its_place() {
        let error = |transform, dtype| check(&[transform], 3, dtype).unwrap_err().to_string();
        let said = error(BatchTransform::MixUp { alpha: 0.0 }, DType::Float32);
        assert_eq!(said, "transforms[3] (MixUp): alpha must be above 0, got 0");
        let said = error(BatchTransform::MixUp { alpha: 1.0 }, DType::UInt8);
        assert!(said.contains("Normalize"), "{said}");
        let inner = vec![BatchTransform::CutMix { alpha: f64::NAN }];
        let said = error(BatchTransform::RandomApply { transforms: inner, p: 0.5 }, DType::UInt8);
        assert!(said.contains("RandomApply") && said.contains("CutMix: alpha"), "{said}");
        assert!(check(&[BatchTransform::CutMix { alpha: 1.0 }], 0, DType::UInt8).is_ok());
    }
}
