use super::geometry::{padded, random_offset};
use super::*;

const PHOTO: Size = Size { width: 500, height: 375 };

fn draws(position: u64) -> Draws {
    EpochKey::new(11, 0).draws(position, 0, 0)
}

/// Largest distance between the empirical distribution of `sample` and `cdf`.
fn kolmogorov(mut sample: Vec<f64>, cdf: impl Fn(f64) -> f64) -> f64 {
    sample.sort_by(f64::total_cmp);
    let n = sample.len() as f64;
    let distance = |(i, x): (usize, &f64)| {
        let expected = cdf(*x);
        (expected - i as f64 / n).abs().max(((i + 1) as f64 / n - expected).abs())
    };
    sample.iter().enumerate().map(distance).fold(0.0, f64::max)
}

#[test]
fn t24_random_resized_crop_draws_area_and_ratio_uniformly() {
    // A square image large enough that rounding and rejected tries do not bend the distributions:
    // with areas up to 0.5 every ratio fits.
    let image = Size { width: 20_000, height: 20_000 };
    let crops: Vec<Size> = (0..100_000)
        .map(|position| {
            let (scale, ratio) = ([0.08, 0.5], [0.75, 4.0 / 3.0]);
            random_resized_crop(image, scale, ratio, &mut draws(position)).2
        })
        .collect();
    let area = |crop: &Size| crop.pixels() as f64 / image.pixels() as f64;
    let log_ratio = |crop: &Size| (f64::from(crop.width) / f64::from(crop.height)).ln();
    let (low, high) = (0.75_f64.ln(), (4.0_f64 / 3.0).ln());
    let areas = crops.iter().map(area).collect();
    let ratios = crops.iter().map(log_ratio).collect();
    // Kolmogorov's bound for p = 0.01 is 1.628 / sqrt(n).
    let bound = 1.628 / 100_000_f64.sqrt();
    let distance = kolmogorov(areas, |x| ((x - 0.08) / 0.42).clamp(0.0, 1.0));
    assert!(distance < bound, "area: {distance}");
    let distance = kolmogorov(ratios, |x| ((x - low) / (high - low)).clamp(0.0, 1.0));
    assert!(distance < bound, "log ratio: {distance}");
}

#[test]
fn t24_offsets_cover_every_place() {
    let image = Size { width: 6, height: 4 };
    let mut seen = std::collections::BTreeSet::new();
    for position in 0..2000 {
        let (x, y, crop) =
            random_resized_crop(image, [0.16, 0.17], [1.0, 1.0], &mut draws(position));
        assert_eq!(crop, Size { width: 2, height: 2 });
        seen.insert((x, y));
    }
    assert_eq!(seen.len(), 5 * 3);
}

#[test]
fn t24_extreme_images_fall_back_to_the_central_crop() {
    let thin = Size { width: 1000, height: 10 };
    let (x, y, crop) = random_resized_crop(thin, [0.9, 1.0], [0.75, 4.0 / 3.0], &mut draws(0));
    assert_eq!((x, y, crop), (493, 0, Size { width: 13, height: 10 }));
    let tall = thin.transposed();
    let (x, y, crop) = random_resized_crop(tall, [0.9, 1.0], [0.75, 4.0 / 3.0], &mut draws(0));
    assert_eq!((x, y, crop), (0, 493, Size { width: 10, height: 13 }));
    let dot = Size { width: 1, height: 1 };
    let (.., crop) = random_resized_crop(dot, [0.08, 0.1], [0.75, 4.0 / 3.0], &mut draws(0));
    assert_eq!(crop, dot);
}

#[test]
fn resize_follows_torchvisions_rounding() {
    // _compute_resized_output_size((375, 500), [256]) = [256, 341] and its kin.
    let of = |size, wanted: &[u32], max_size| resized(size, wanted, max_size).unwrap();
    assert_eq!(of(PHOTO, &[256], None), Size { width: 341, height: 256 });
    assert_eq!(of(PHOTO.transposed(), &[256], None), Size { width: 256, height: 341 });
    assert_eq!(of(PHOTO, &[256], Some(300)), Size { width: 300, height: 225 });
    assert_eq!(of(PHOTO, &[30, 40], None), Size { width: 40, height: 30 });
    let strip = Size { width: 60_000, height: 1 };
    let reason = resized(strip, &[256], None).unwrap_err();
    assert!(reason.contains("Resize(256)") && reason.contains("60000x1"), "{reason}");
}

#[test]
fn center_crop_rounds_half_to_even_and_pads() {
    assert_eq!(centered(341, 224), 58, "round(58.5) is 58 in Python");
    assert_eq!(centered(343, 224), 60, "round(59.5) is 60 in Python");
    assert_eq!(centered(256, 224), 16);
    assert_eq!(centered(10, 15), -2);
}

#[test]
fn random_crop_covers_the_padded_image() {
    assert_eq!(padded(8, 8, [2, 1], true), (2, 1));
    assert_eq!(padded(5, 8, [0, 0], true), (3, 3), "as many on both sides");
    assert_eq!(padded(5, 9, [1, 0], true), (4, 3));
    assert_eq!(padded(5, 8, [0, 0], false), (0, 0));
    let offsets: std::collections::BTreeSet<i64> =
        (0..500).filter_map(|at| random_offset(11, 8, &mut draws(at))).collect();
    assert_eq!(offsets, (0..=3).collect());
    assert_eq!(random_offset(5, 8, &mut draws(0)), None);
}

#[test]
fn color_jitter_draws_each_order_and_stays_in_range() {
    let ranges = [Some([0.5, 1.5]), Some([0.8, 1.2]), None, Some([-0.1, 0.1])];
    let mut orders = std::collections::BTreeMap::new();
    for position in 0..6000 {
        let ops: Vec<ColorOp> = color::color_jitter(ranges, &mut draws(position));
        let order: Vec<u8> = ops
            .iter()
            .map(|op| match op {
                ColorOp::Brightness(factor) if (0.5..1.5).contains(factor) => 0,
                ColorOp::Contrast(blend) if (0.8..1.2).contains(&blend.image) => 1,
                ColorOp::Hue(factor) if (-0.1..0.1).contains(factor) => 3,
                other => panic!("out of range or not asked for: {other:?}"),
            })
            .collect();
        *orders.entry(order).or_insert(0) += 1;
    }
    assert_eq!(orders.len(), 6);
    assert!(orders.values().all(|count| (850..1150).contains(count)), "{orders:?}");
}

#[test]
fn flips_happen_with_their_probability() {
    let flips = |p| {
        let transform = [Transform::RandomHorizontalFlip { p }];
        let steps = |position| {
            let key = DrawKey { epoch: EpochKey::new(0, 0), position, group: 0 };
            resolve(&transform, PHOTO, key).unwrap().len()
        };
        (0..10_000).map(steps).sum::<usize>()
    };
    assert_eq!((flips(0.0), flips(1.0)), (0, 10_000));
    assert!((2_850..3_150).contains(&flips(0.3)), "{}", flips(0.3));
}

#[test]
fn rng_1_fields_of_one_group_move_together() {
    let transforms = [Transform::RandomResizedCrop {
        size: [8, 8],
        scale: [0.08, 1.0],
        ratio: [0.75, 1.3],
        interpolation: Interpolation::Bilinear,
        antialias: true,
    }];
    let steps = |position, group| {
        let key = DrawKey { epoch: EpochKey::new(0, 0), position, group };
        resolve(&transforms, PHOTO, key).unwrap()
    };
    assert_eq!(steps(5, 0), steps(5, 0));
    assert_ne!(steps(5, 0), steps(5, 1));
    assert_ne!(steps(5, 0), steps(6, 0));
}

fn list(json: &str) -> Vec<Transform> {
    serde_json::from_str(json).unwrap()
}

/// Steps of a list of transforms at many positions, counted.
fn counted(json: &str, positions: u64) -> std::collections::BTreeMap<String, u64> {
    let transforms = list(json);
    let mut counts = std::collections::BTreeMap::new();
    for position in 0..positions {
        let key = DrawKey { epoch: EpochKey::new(3, 0), position, group: 0 };
        let steps = resolve(&transforms, PHOTO, key).unwrap();
        let names: Vec<String> = steps.iter().map(|step| format!("{step:?}")).collect();
        *counts.entry(names.join(" ")).or_insert(0) += 1;
    }
    counts
}

#[test]
fn lists_are_applied_whole_or_not_at_all() {
    let json = r#"[{"name": "RandomApply", "p": 0.3, "transforms": [
        {"name": "RandomHorizontalFlip", "p": 1}, {"name": "RandomVerticalFlip", "p": 1}]}]"#;
    let counts = counted(json, 10_000);
    assert_eq!(counts.keys().collect::<Vec<_>>(), ["", "FlipX FlipY"]);
    assert!((2_850..3_150).contains(&counts["FlipX FlipY"]), "{counts:?}");
}

#[test]
fn one_of_a_list_is_chosen_by_its_probability() {
    let json = r#"[{"name": "RandomChoice", "p": [0.2, 0, 0.6], "transforms": [
        {"name": "RandomHorizontalFlip", "p": 1}, {"name": "Grayscale"},
        {"name": "RandomVerticalFlip", "p": 1}]}]"#;
    let counts = counted(json, 10_000);
    assert_eq!(counts.keys().collect::<Vec<_>>(), ["FlipX", "FlipY"]);
    assert!((2_350..2_650).contains(&counts["FlipX"]), "a quarter: {counts:?}");
}

#[test]
fn every_order_of_a_list_comes_alike() {
    let json = r#"[{"name": "RandomOrder", "transforms": [{"name": "RandomHorizontalFlip", "p": 1},
        {"name": "Grayscale"}, {"name": "RandomVerticalFlip", "p": 1}]}]"#;
    let counts = counted(json, 6_000);
    assert_eq!(counts.len(), 6);
    assert!(counts.values().all(|count| (850..1_150).contains(count)), "{counts:?}");
}

#[test]
fn sizes_are_followed_through_lists() {
    let json = r#"[{"name": "RandomApply", "p": 1, "transforms": [
        {"name": "Resize", "size": [100]}, {"name": "CenterCrop", "size": [90, 90]}]},
        {"name": "CenterCrop", "size": [80, 80]}]"#;
    let key = DrawKey { epoch: EpochKey::new(3, 0), position: 0, group: 0 };
    let steps = resolve(&list(json), PHOTO, key).unwrap();
    let Step::Crop { x, y, size, .. } = steps[2] else { panic!("{steps:?}") };
    assert_eq!((x, y, size), (5, 5, Size { width: 80, height: 80 }), "of 90 by 90");
}

#[test]
fn amounts_are_drawn_uniformly() {
    type Amount = (fn(&warp::Affine) -> f64, [f64; 2]);
    // Kolmogorov's bound for p = 0.01.
    let bound = 1.628 / 100_000_f64.sqrt();
    let image = Size { width: 400_000, height: 300_000 };
    let affine = |position| {
        let (degrees, scale) = ([-30.0, 50.0], Some([0.5, 2.0]));
        let (translate, shear) = (Some([0.25, 0.5]), Some([-10.0, 20.0, 5.0, 6.0]));
        let draws = &mut draws(position);
        warp::random_affine(image, degrees, translate, scale, shear, None, draws)
    };
    let drawn: Vec<warp::Affine> = (0..100_000).map(affine).collect();
    let amounts: [Amount; 6] = [
        (|affine| affine.angle, [-30.0, 50.0]),
        (|affine| affine.translate[0], [-1e5, 1e5]),
        (|affine| affine.translate[1], [-1.5e5, 1.5e5]),
        (|affine| affine.scale, [0.5, 2.0]),
        (|affine| affine.shear[0], [-10.0, 20.0]),
        (|affine| affine.shear[1], [5.0, 6.0]),
    ];
    for (place, (amount, [low, high])) in amounts.into_iter().enumerate() {
        let sample = drawn.iter().map(amount).collect();
        let distance = kolmogorov(sample, |x| ((x - low) / (high - low)).clamp(0.0, 1.0));
        assert!(distance < bound, "amount {place}: {distance}");
    }
    let ranges = [Some([0.5, 1.5]), None, None, None];
    let factor = |position| match color::color_jitter(ranges, &mut draws(position))[..] {
        [ColorOp::Brightness(factor)] => f64::from(factor),
        ref other => panic!("{other:?}"),
    };
    let distance = kolmogorov((0..100_000).map(factor).collect(), |x| x - 0.5);
    assert!(distance < bound, "brightness: {distance}");
    let mut areas = Vec::new();
    for position in 0..100_000 {
        // Of a square image all of these fit, so that no try is rejected.
        let (scale, ratio) = ([0.02, 0.12], [0.3, 3.3]);
        let square = Size { width: 50_000, height: 50_000 };
        let region = geometry::erased(square, scale, ratio, &mut draws(position)).unwrap();
        areas.push(region.size().pixels() as f64 / square.pixels() as f64);
    }
    let distance = kolmogorov(areas, |x| ((x - 0.02) / 0.1).clamp(0.0, 1.0));
    assert!(distance < bound, "erased area: {distance}");
}

#[test]
fn augmix_draws_chains_and_weights() {
    let json = r#"[{"name": "AugMix", "severity": 3, "mixture_width": 3, "chain_depth": null,
        "alpha": 1, "all_ops": true, "interpolation": "bilinear", "fill": null}]"#;
    let transforms = list(json);
    let (mut own, mut depths) = (Vec::new(), [0_u32; 4]);
    for position in 0..20_000 {
        let key = DrawKey { epoch: EpochKey::new(3, 0), position, group: 0 };
        let steps = resolve(&transforms, PHOTO, key).unwrap();
        let [Step::Mix { weight, layers }] = steps.as_slice() else { panic!("{steps:?}") };
        assert_eq!(layers.len(), 3);
        let sum: f32 = layers.iter().map(|(weight, _)| weight).sum::<f32>() + weight;
        assert!((sum - 1.0).abs() < 1e-6, "{sum}");
        own.push(f64::from(*weight));
        for (_, chain) in layers {
            depths[chain.len()] += 1;
        }
    }
    let bound = 1.628 / 20_000_f64.sqrt();
    assert!(kolmogorov(own, |x| x) < bound);
    // One of 13 is sharpness, and magnitudes of place 0 are no step: some chains are shorter.
    assert!(depths[3] > 14_000 && depths[2] > depths[1] / 2, "{depths:?}");
}
