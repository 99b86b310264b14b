//! Fused plans against the same steps one by one, on pixels, with an executor of a few lines.

#![allow(clippy::unwrap_used, reason = "a panic fails the test")]

use forebay_core::rng::EpochKey;
use forebay_core::{
    Axis, Field, Format, ImageMeta, ImagePlan, Orientation, Recipe, RecipeSpec, Schema, Size, Taps,
};
use proptest::prelude::*;

/// One channel of 8-bit pixels.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Gray {
    width: usize,
    height: usize,
    pixels: Vec<u8>,
}

impl Gray {
    fn noise(width: u32, height: u32) -> Self {
        let mut draws = EpochKey::new(99, u64::from(width)).draws(u64::from(height), 0, 0);
        let (width, height) = (width as usize, height as usize);
        let pixels = (0..width * height).map(|_| u8::try_from(draws.below(256)).unwrap()).collect();
        Self { width, height, pixels }
    }

    fn from_fn(width: usize, height: usize, f: impl Fn(usize, usize) -> u8) -> Self {
        let pixels = (0..height).flat_map(|y| (0..width).map(move |x| (x, y)));
        Self { width, height, pixels: pixels.map(|(x, y)| f(x, y)).collect() }
    }

    fn at(&self, x: usize, y: usize) -> u8 {
        self.pixels[y * self.width + x]
    }

    fn transposed(&self) -> Self {
        Self::from_fn(self.height, self.width, |x, y| self.at(y, x))
    }

    fn mirrored(&self) -> Self {
        Self::from_fn(self.width, self.height, |x, y| self.at(self.width - 1 - x, y))
    }

    fn upside_down(&self) -> Self {
        Self::from_fn(self.width, self.height, |x, y| self.at(x, self.height - 1 - y))
    }
}

fn sample(axis: &Axis, out: usize, fill: u8, input: impl Fn(usize) -> u8) -> u8 {
    let Some(i) = out.checked_sub(axis.content_start as usize) else { return fill };
    if i >= axis.content_len() as usize {
        return fill;
    }
    match &axis.taps {
        Taps::Copy(sources) => input(sources[i] as usize),
        Taps::Weighted(table) => {
            let (start, weights) = table.row(i);
            let half = 1 << (table.precision - 1);
            let sum = weights.iter().enumerate().fold(half, |sum, (k, &weight)| {
                sum + i32::from(weight) * i32::from(input(start + k))
            });
            u8::try_from((sum >> table.precision).clamp(0, 255)).unwrap()
        }
    }
}

fn run(plan: &ImagePlan, image: &Gray) -> Gray {
    let region = plan.region;
    let (left, top) = (region.x as usize, region.y as usize);
    let (width, height) = (region.width as usize, region.height as usize);
    let mut current = Gray::from_fn(width, height, |x, y| image.at(x + left, y + top));
    if plan.transpose {
        current = current.transposed();
    }
    for pass in &plan.passes {
        assert!(pass.color.is_empty(), "geometry only");
        let fill = pass.fill[0];
        let wide = Gray::from_fn(pass.x.out_len as usize, current.height, |x, y| {
            sample(&pass.x, x, fill, |source| current.at(source, y))
        });
        current = Gray::from_fn(wide.width, pass.y.out_len as usize, |x, y| {
            sample(&pass.y, y, fill, |source| wide.at(x, source))
        });
    }
    current
}

fn plan(transforms: &[String], size: Size, exif: u16, position: u64) -> Option<ImagePlan> {
    let json = format!(r#"{{"transforms": [{}]}}"#, transforms.join(","));
    let spec: RecipeSpec = serde_json::from_str(&json).unwrap();
    let recipe = Recipe::new(spec, &Schema { fields: vec![Field::image("image")] }, true).ok()?;
    let meta = ImageMeta {
        format: Format::Jpeg,
        size,
        orientation: Orientation::from_exif(exif).unwrap(),
        components: 3,
        progressive: false,
        baseline: None,
        restarts: false,
        bytes: 0,
    };
    Some(recipe.plan_image(&meta, EpochKey::new(0, 0), position).unwrap())
}

fn center_crop(height: impl std::fmt::Display, width: impl std::fmt::Display) -> String {
    format!(r#"{{"name": "CenterCrop", "size": [{height}, {width}]}}"#)
}

/// Steps without a draw that depends on the place in the recipe.
fn fixed_step() -> impl Strategy<Value = String> {
    let side = 1_u32..40;
    let interpolation = prop::sample::select(vec!["bilinear", "bicubic", "nearest"]);
    prop_oneof![
        (side.clone(), side.clone()).prop_map(|(height, width)| center_crop(height, width)),
        (side.clone(), side, interpolation, any::<bool>()).prop_map(
            |(height, width, interpolation, antialias)| format!(
                r#"{{"name": "Resize", "size": [{height}, {width}],
                     "interpolation": "{interpolation}", "antialias": {antialias}}}"#
            )
        ),
        Just(r#"{"name": "RandomHorizontalFlip", "p": 1}"#.to_owned()),
        Just(r#"{"name": "RandomVerticalFlip", "p": 1}"#.to_owned()),
    ]
}

fn any_step() -> impl Strategy<Value = String> {
    let crop = (1_u32..40, 1_u32..40).prop_map(|(height, width)| {
        format!(
            r#"{{"name": "RandomCrop", "size": [{height}, {width}], "padding": [3, 1, 2, 0],
                 "pad_if_needed": true, "fill": [7, 7, 7]}}"#
        )
    });
    prop_oneof![4 => fixed_step(), 1 => crop]
}

/// Applies the steps one recipe at a time; a crop that changes nothing makes each a recipe.
fn one_by_one(transforms: &[String], image: &Gray) -> Gray {
    transforms.iter().fold(image.clone(), |current, transform| {
        let keep = center_crop(current.height, current.width);
        let side = |length: usize| u32::try_from(length).unwrap();
        let size = Size { width: side(current.width), height: side(current.height) };
        run(&plan(&[keep, transform.clone()], size, 1, 0).unwrap(), &current)
    })
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(300) })]

    #[test]
    fn fused_equals_one_by_one(
        transforms in prop::collection::vec(fixed_step(), 1..6),
        width in 1_u32..50,
        height in 1_u32..50,
    ) {
        let Some(plan) = plan(&transforms, Size { width, height }, 1, 0) else { return Ok(()) };
        let image = Gray::noise(width, height);
        let (fused, chained) = (run(&plan, &image), one_by_one(&transforms, &image));
        prop_assert_eq!((fused.width, fused.height), (chained.width, chained.height));
        let worst = fused.pixels.iter().zip(&chained.pixels).map(|(a, b)| a.abs_diff(*b)).max();
        prop_assert!(worst <= Some(1), "off by {:?}", worst);
    }

    #[test]
    fn plans_stay_inside_the_image(
        transforms in prop::collection::vec(any_step(), 1..6),
        width in 1_u32..50,
        height in 1_u32..50,
        exif in 1_u16..9,
        position in any::<u64>(),
    ) {
        let size = Size { width, height };
        let Some(plan) = plan(&transforms, size, exif, position) else { return Ok(()) };
        prop_assert!(plan.region.fits(size));
        run(&plan, &Gray::noise(width, height));
    }

    #[test]
    fn orientation_comes_first_then_the_recipe(
        transforms in prop::collection::vec(any_step(), 1..5),
        width in 1_u32..40,
        height in 1_u32..40,
        exif in 1_u16..9,
    ) {
        let size = Size { width, height };
        let orientation = Orientation::from_exif(exif).unwrap();
        let Some(stored) = plan(&transforms, size, exif, 3) else { return Ok(()) };
        let upright = plan(&transforms, orientation.upright(size), 1, 3).unwrap();
        let image = Gray::noise(width, height);
        let mut turned = image.clone();
        if orientation.transpose {
            turned = turned.transposed();
        }
        if orientation.flip_x {
            turned = turned.mirrored();
        }
        if orientation.flip_y {
            turned = turned.upside_down();
        }
        prop_assert_eq!(run(&stored, &image), run(&upright, &turned));
    }

    #[test]
    fn a_last_flip_is_the_exact_mirror(
        transforms in prop::collection::vec(any_step(), 1..5),
        width in 1_u32..50,
        height in 1_u32..50,
    ) {
        let size = Size { width, height };
        let Some(straight) = plan(&transforms, size, 1, 5) else { return Ok(()) };
        let mut flipped = transforms.clone();
        flipped.push(r#"{"name": "RandomHorizontalFlip", "p": 1}"#.into());
        let flipped = plan(&flipped, size, 1, 5).unwrap();
        let image = Gray::noise(width, height);
        prop_assert_eq!(run(&flipped, &image), run(&straight, &image).mirrored());
    }
}
