//! PIX-3 on what the planner makes of random recipes.

#![allow(clippy::unwrap_used, reason = "a failed unwrap fails the test")]

#[path = "../../../rust/codec/tests/common/mod.rs"]
mod codec;
mod common;

use codec::picture;
use common::{Image, check, meta};
use forebay_core::rng::EpochKey;
use forebay_core::{Field, ImagePlan, Orientation, Recipe, RecipeSpec, Schema, Size};
use proptest::prelude::*;

fn recipe(transforms: &[String], layout: &str) -> Option<Recipe> {
    let transforms = transforms.join(",");
    let json = format!(r#"{{"transforms": [{transforms}], "layout": "{layout}"}}"#);
    let spec: RecipeSpec = serde_json::from_str(&json).unwrap();
    Recipe::new(spec, &Schema { fields: vec![Field::image("image")] }, true).ok()
}

fn side() -> impl Strategy<Value = u32> {
    1_u32..40
}

fn interpolation() -> impl Strategy<Value = &'static str> {
    prop::sample::select(vec!["bilinear", "bicubic", "nearest", "nearest-exact"])
}

fn geometry() -> impl Strategy<Value = String> {
    let resize = (side(), side(), interpolation(), any::<bool>()).prop_map(
        |(height, width, interpolation, antialias)| {
            format!(
                r#"{{"name": "Resize", "size": [{height}, {width}],
                     "interpolation": "{interpolation}", "antialias": {antialias}}}"#
            )
        },
    );
    let center_crop = (side(), side()).prop_map(|(height, width)| {
        format!(r#"{{"name": "CenterCrop", "size": [{height}, {width}]}}"#)
    });
    let random_crop = (side(), side()).prop_map(|(height, width)| {
        format!(
            r#"{{"name": "RandomCrop", "size": [{height}, {width}], "padding": [3, 1, 2, 0],
                 "pad_if_needed": true, "fill": [7, 90, 200]}}"#
        )
    });
    let resized_crop = (side(), side()).prop_map(|(height, width)| {
        format!(r#"{{"name": "RandomResizedCrop", "size": [{height}, {width}]}}"#)
    });
    prop_oneof![
        resize,
        center_crop,
        random_crop,
        resized_crop,
        Just(r#"{"name": "RandomHorizontalFlip"}"#.to_owned()),
        Just(r#"{"name": "RandomVerticalFlip"}"#.to_owned()),
    ]
}

/// Steps that take some pixels of all.
fn gather() -> impl Strategy<Value = String> {
    let sampling = (prop::sample::select(vec!["nearest", "bilinear"]), any::<bool>()).prop_map(
        |(interpolation, fills)| {
            let fill = if fills { "[9, 100, 255]" } else { "null" };
            format!(r#""interpolation": "{interpolation}", "fill": {fill}"#)
        },
    );
    let step = prop::sample::select(vec![
        r#"{"name": "RandomRotation", "degrees": [-180, 180], "expand": false, "center": null, @}"#,
        r#"{"name": "RandomAffine", "degrees": [-9, 9], "translate": [0.2, 0.1], "scale": [0.5, 2],
            "shear": [-30, 30, -20, 20], "center": [3, 4], @}"#,
        r#"{"name": "RandomPerspective", "distortion_scale": 0.7, "p": 1, @}"#,
        r#"{"name": "RandomAdjustSharpness", "sharpness_factor": 1.9, "p": 1}"#,
        r#"{"name": "RandomAdjustSharpness", "sharpness_factor": 0.2, "p": 1}"#,
        r#"{"name": "GaussianBlur", "kernel_size": [5, 3], "sigma": [0.1, 2]}"#,
        r#"{"name": "RandAugment", "num_ops": 3, "magnitude": 20, "num_magnitude_bins": 31, @}"#,
        r#"{"name": "TrivialAugmentWide", "num_magnitude_bins": 31, @}"#,
        r#"{"name": "AutoAugment", "policy": "svhn", @}"#,
        r#"{"name": "AugMix", "severity": 10, "mixture_width": 3, "chain_depth": null,
            "alpha": 1, "all_ops": true, @}"#,
        r#"{"name": "AugMix", "severity": 3, "mixture_width": 1, "chain_depth": 5,
            "alpha": 0.5, "all_ops": false, @}"#,
    ]);
    (step, sampling).prop_map(|(step, sampling)| step.replace('@', &sampling))
}

fn step() -> impl Strategy<Value = String> {
    let jitter = r#"{"name": "ColorJitter", "brightness": [0.6, 1.4], "contrast": [0.6, 1.4],
                     "saturation": [0.6, 1.4], "hue": [-0.3, 0.3]}"#;
    prop_oneof![3 => geometry(), 1 => Just(jitter.to_owned()), 2 => gather()]
}

fn ending() -> impl Strategy<Value = Vec<String>> {
    let to = |dtype: &str| format!(r#"{{"name": "ToDtype", "dtype": "{dtype}", "scale": true}}"#);
    let normalize =
        r#"{"name": "Normalize", "mean": [0.485, 0.456, 0.406], "std": [0.229, 0.224, 0.225]}"#;
    prop::sample::select(vec![
        vec![],
        vec![to("float32")],
        vec![to("float16")],
        vec![to("bfloat16")],
        vec![to("float32"), normalize.to_owned()],
    ])
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(200) })]

    #[test]
    fn batches_of_a_recipe_equal_the_cpu(
        transforms in prop::collection::vec(step(), 1..6),
        ending in ending(),
        layout in prop::sample::select(vec!["contiguous", "channels_last"]),
        sizes in prop::collection::vec((1_u32..60, 1_u32..60, 1_u16..9), 1..6),
        position in any::<u64>(),
    ) {
        let transforms = [transforms, ending].concat();
        let Some(recipe) = recipe(&transforms, layout) else { return Ok(()) };
        let batch: Vec<(Image, ImagePlan)> = sizes
            .into_iter()
            .zip(0..)
            .filter_map(|((width, height, exif), i)| {
                let size = Size { width, height };
                let meta = meta(size, Orientation::from_exif(exif).unwrap());
                let key = EpochKey::new(0, 0);
                let plan = recipe.plan_image(&meta, key, position.wrapping_add(i)).ok()?;
                Some((Image { size, channels: 3, pixels: picture(size, i) }, plan))
            })
            .collect();
        check(&batch.iter().map(|(image, plan)| (image, plan)).collect::<Vec<_>>());
    }
}
