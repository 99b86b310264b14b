use super::*;
use crate::{Axis, Bytes, Channels, DType, Field, Format, Orientation, Pass, Reduce, Region, Taps};

fn recipe(json: &str) -> Result<Recipe, RecipeError> {
    let spec: RecipeSpec = serde_json::from_str(json).unwrap();
    Recipe::new(spec, &Schema { fields: vec![Field::image("image")] }, true)
}

fn meta(width: u32, height: u32, exif: u16) -> ImageMeta {
    ImageMeta {
        format: Format::Jpeg,
        size: Size { width, height },
        orientation: Orientation::from_exif(exif).unwrap(),
        components: 3,
        progressive: false,
        baseline: None,
        restarts: false,
        bytes: 1000,
    }
}

fn plan(json: &str, exif: u16) -> ImagePlan {
    recipe(json).unwrap().plan_image(&meta(500, 375, exif), EpochKey::new(1, 0), 7).unwrap()
}

const TRAIN: &str = r#"{"transforms": [
    {"name": "RandomResizedCrop", "size": [224, 224]}, {"name": "RandomHorizontalFlip"},
    {"name": "Normalize", "mean": [0.5, 0.5, 0.5], "std": [0.2, 0.2, 0.2]}]}"#;
const VALIDATE: &str = r#"{"transforms": [
    {"name": "Resize", "size": [256]}, {"name": "CenterCrop", "size": [224, 224]},
    {"name": "Normalize", "mean": [0.5, 0.5, 0.5], "std": [0.2, 0.2, 0.2]}]}"#;

#[test]
fn common_recipes_are_one_pass() {
    for json in [TRAIN, VALIDATE] {
        for exif in 1..=8 {
            let plan = plan(json, exif);
            assert_eq!(plan.passes.len(), 1);
            assert_eq!(plan.passes[0].size(), Size { width: 224, height: 224 });
            assert_eq!(plan.write.dtype, DType::Float32);
            assert!(plan.write.scale && plan.write.normalize.is_some());
        }
    }
}

#[test]
fn validation_reads_only_the_columns_that_the_crop_shows() {
    let plan = plan(VALIDATE, 1);
    // Columns 58 to 281 of 341 at 500 / 341 pixels each: centres 85.8 to 412.8, and a triangle of
    // half-width 1.47 around them; rows 16 to 239 of 256 alike.
    assert_eq!(plan.region, Region { x: 84, y: 23, width: 330, height: 329 });
    assert!(!plan.transpose);
}

#[test]
fn transposed_images_swap_the_region() {
    let upright = plan(VALIDATE, 1);
    let turned =
        recipe(VALIDATE).unwrap().plan_image(&meta(375, 500, 5), EpochKey::new(1, 0), 7).unwrap();
    let Region { x, y, width, height } = upright.region;
    assert_eq!(turned.region, Region { x: y, y: x, width: height, height: width });
    assert!(turned.transpose);
    assert_eq!(turned.passes, upright.passes);
}

#[test]
fn contrast_ends_a_pass_with_the_grey_mean() {
    let json = r#"{"transforms": [{"name": "Resize", "size": [8, 8]},
        {"name": "ColorJitter", "brightness": [1.5, 1.5]},
        {"name": "ColorJitter", "contrast": [0.5, 0.5]},
        {"name": "ColorJitter", "saturation": [0.5, 0.5]}, {"name": "RandomHorizontalFlip"}]}"#;
    let plan = plan(json, 1);
    assert_eq!(plan.passes.len(), 2);
    assert_eq!(plan.passes[0].reduce, Some(Reduce::GrayMean));
    assert_eq!(plan.passes[0].color.len(), 1);
    assert_eq!(plan.passes[1].color.len(), 2);
    assert_eq!(plan.passes[1].reduce, None);
}

#[test]
fn what_does_not_commute_closes_a_pass() {
    let passes =
        |transforms: &str| plan(&format!(r#"{{"transforms": [{transforms}]}}"#), 1).passes.len();
    let resize = r#"{"name": "Resize", "size": [100, 100]}"#;
    let crop = r#"{"name": "CenterCrop", "size": [64, 64]}"#;
    let pad = r#"{"name": "CenterCrop", "size": [600, 600]}"#;
    let color = r#"{"name": "ColorJitter", "saturation": [0.5, 0.5]}"#;
    let flip = r#"{"name": "RandomVerticalFlip", "p": 1}"#;
    assert_eq!(passes(&format!("{flip}, {crop}, {resize}, {flip}, {crop}, {pad}")), 1);
    assert_eq!(passes(&format!("{resize}, {color}, {flip}, {crop}")), 1);
    assert_eq!(passes(&format!("{resize}, {resize}")), 1, "the second changes nothing");
    assert_eq!(passes(&format!("{resize}, {crop}, {resize}")), 2);
    let [across, down] = [[375, 100], [100, 100]]
        .map(|[height, width]| format!(r#"{{"name": "Resize", "size": [{height}, {width}]}}"#));
    assert_eq!(passes(&format!("{across}, {down}")), 2, "pixels are rounded between them");
    let mirror = r#"{"name": "Pad", "padding": [3, 3, 3, 3], "padding_mode": "reflect"}"#;
    assert_eq!(passes(&format!("{crop}, {mirror}, {flip}, {color}, {crop}")), 1);
    assert_eq!(passes(&format!("{resize}, {mirror}")), 2);
    assert_eq!(passes(&format!("{mirror}, {pad}")), 2);
    assert_eq!(passes(&format!("{pad}, {resize}")), 2);
    assert_eq!(passes(&format!("{pad}, {color}")), 2);
    assert_eq!(passes(&format!("{color}, {resize}")), 2);
}

#[test]
fn a_fixed_crop_joins_the_resize_before_it() {
    let json = r#"{"transforms": [{"name": "Resize", "size": [576, 1024]},
        {"name": "Crop", "top": 204, "left": 0, "height": 372, "width": 1024}]}"#;
    let recipe = recipe(json).unwrap();
    let plan = recipe.plan_image(&meta(1600, 900, 1), EpochKey::new(0, 0), 0).unwrap();
    assert_eq!(plan.passes.len(), 1);
    assert_eq!(plan.passes[0].size(), Size { width: 1024, height: 372 });
    // Row 204 of 576 has its centre at 319.5 of 900 and a triangle of 1.56 around it.
    assert_eq!((plan.region.y, plan.region.y + plan.region.height), (318, 900));
}

#[test]
fn cropping_away_and_padding_again_shows_fill() {
    let json = r#"{"transforms": [{"name": "CenterCrop", "size": [1, 3]},
        {"name": "CenterCrop", "size": [1, 7]}]}"#;
    let plan = plan(json, 1);
    let Pass { x, .. } = &plan.passes[0];
    assert_eq!((x.out_len, x.content_start, x.content_len()), (7, 2, 3));
}

#[test]
fn a_flip_mirrors_the_table_exactly() {
    let of = |flip: &str| {
        let json =
            format!(r#"{{"transforms": [{{"name": "Resize", "size": [224, 224]}} {flip}]}}"#);
        plan(&json, 1).passes.remove(0).x
    };
    let Axis { taps: Taps::Weighted(mut straight), .. } = of("") else { panic!("weighted") };
    let Axis { taps: Taps::Weighted(flipped), .. } =
        of(r#", {"name": "RandomHorizontalFlip", "p": 1}"#)
    else {
        panic!("weighted")
    };
    straight.reverse_outputs();
    assert_eq!(straight, flipped);
}

#[test]
fn recipes_that_make_no_sense_are_refused() {
    let problem = |transforms: &str, rest: &str| {
        recipe(&format!(r#"{{"transforms": [{transforms}] {rest}}}"#)).unwrap_err().to_string()
    };
    let crop = r#"{"name": "CenterCrop", "size": [8, 8]}"#;
    let normalize = r#"{"name": "Normalize", "mean": [0, 0, 0], "std": [1, 1, 1]}"#;
    let cases = [
        (problem("", ""), "cannot batch"),
        (problem(r#"{"name": "Resize", "size": [256]}"#, ""), "Resize((height, width))"),
        (problem(r#"{"name": "CenterCrop", "size": [0, 8]}"#, ""), "got 0"),
        (problem(&format!("{normalize}, {crop}"), ""), "move it before Normalize"),
        (problem(&format!("{crop}, {normalize}, {normalize}"), ""), "second Normalize"),
        (problem(&format!("{crop}, {normalize}"), r#", "dtype": "uint8""#), "contradicts"),
        (problem(crop, r#", "dtype": "int64""#), "not offered"),
        (
            problem(r#"{"name": "Normalize", "mean": [0, 0, 0], "std": [1, 0, 1]}"#, ""),
            "transforms[0] (Normalize): std must be positive, got 0",
        ),
        (problem(r#"{"name": "RandomHorizontalFlip", "p": 1.5}"#, ""), "p must be within 0..=1"),
    ];
    for (message, part) in cases {
        assert!(message.contains(part), "{message:?} should contain {part:?}");
    }
}

#[test]
fn dtypes_follow_torchvision() {
    let write = |transforms: &str, rest: &str| {
        let crop = r#"{"name": "CenterCrop", "size": [8, 8]}"#;
        let json = format!(r#"{{"transforms": [{crop} {transforms}] {rest}}}"#);
        let write = recipe(&json).unwrap().image_write;
        (write.dtype, write.scale)
    };
    assert_eq!(write("", ""), (DType::UInt8, false));
    assert_eq!(write("", r#", "dtype": "float16""#), (DType::Float16, true));
    let to_float = r#", {"name": "ToDtype", "dtype": "float32", "scale": false}"#;
    assert_eq!(write(to_float, ""), (DType::Float32, false));
    let normalize = r#", {"name": "Normalize", "mean": [0, 0, 0], "std": [1, 1, 1]}"#;
    assert_eq!(write(&format!("{to_float} {normalize}"), ""), (DType::Float32, false));
    assert_eq!(write(normalize, r#", "dtype": "bfloat16""#), (DType::BFloat16, true));
}

#[test]
fn boxes_masks_and_images_of_a_group_move_together() {
    let schema =
        Schema { fields: vec![Field::image("image"), Field::mask("mask"), Field::boxes("boxes")] };
    let json = r#"{"transforms": [{"name": "CenterCrop", "size": [100, 200]},
        {"name": "Resize", "size": [50, 50]}, {"name": "RandomHorizontalFlip", "p": 1},
        {"name": "Normalize", "mean": [0, 0, 0], "std": [1, 1, 1]}]}"#;
    let recipe = Recipe::new(serde_json::from_str(json).unwrap(), &schema, true).unwrap();
    let shapes: Vec<&[usize]> = recipe.specs().iter().map(|spec| spec.shape.as_slice()).collect();
    assert_eq!(shapes, [&[3, 50, 50][..], &[50, 50], &[4]]);
    let encoded = || Value::Encoded(Bytes::new(vec![]));
    let record = |boxes| Record { values: vec![encoded(), encoded(), Value::Boxes(boxes)] };
    let image = Some(Arc::new(meta(400, 300, 1)));
    let metas = [image.clone(), image.clone(), None];
    let key = EpochKey::new(0, 0);
    let boxes = vec![[100.0, 100.0, 300.0, 200.0], [0.0, 0.0, 140.0, 150.0]];
    let plans = recipe.plan(&schema, record(boxes), &metas, key, 0).unwrap();
    let FieldPlan::Elements(rows) = &plans[2] else { panic!("boxes are elements") };
    let rows: Vec<f32> =
        rows.chunks_exact(4).map(|x| f32::from_ne_bytes(x.try_into().unwrap())).collect();
    assert_eq!(rows, [0.0, 0.0, 50.0, 50.0, 40.0, 0.0, 50.0, 25.0]);
    let (FieldPlan::Image(image_plan), FieldPlan::Image(mask_plan)) = (&plans[0], &plans[1]) else {
        panic!("both are decoded")
    };
    assert!(matches!(mask_plan.passes[0].x.taps, Taps::Copy(_)), "classes do not mix");
    assert_eq!((mask_plan.write.channels, mask_plan.write.dtype), (Channels::Index, DType::UInt8));
    assert_eq!(image_plan.passes[0].size(), mask_plan.passes[0].size());
    let none = recipe.plan(&schema, record(vec![]), &metas, key, 0).unwrap();
    assert!(matches!(&none[2], FieldPlan::Elements(rows) if rows.is_empty()));
    let other = [image, Some(Arc::new(meta(40, 30, 1))), None];
    let fault = recipe.plan(&schema, record(vec![]), &other, key, 0).unwrap_err();
    assert_eq!(fault.reason, "mask mask is 40x30, its image 400x300");
}

#[test]
fn a_batch_needs_one_size_whatever_is_drawn() {
    let crop = |side: u32| format!(r#"{{"name": "CenterCrop", "size": [{side}, {side}]}}"#);
    let kept = r#"{"name": "RandomHorizontalFlip"}"#;
    let size = |transforms: String| {
        let json = format!(r#"{{"transforms": [{transforms}]}}"#);
        recipe(&json).map(|recipe| recipe.specs[0].shape[1..].to_vec())
    };
    let choice = |of: &[String]| {
        let p = vec!["1"; of.len()].join(", ");
        let of = of.join(", ");
        format!(r#"{{"name": "RandomChoice", "p": [{p}], "transforms": [{of}]}}"#)
    };
    let apply =
        |p: f64, of: &str| format!(r#"{{"name": "RandomApply", "p": {p}, "transforms": [{of}]}}"#);
    assert_eq!(size(choice(&[crop(8), crop(8)])), Ok(vec![8, 8]));
    assert_eq!(size(choice(&[crop(8), crop(9)])), Err(RecipeError::NoFixedSize));
    assert_eq!(size(format!("{}, {}", crop(8), choice(&[crop(8), kept.into()]))), Ok(vec![8, 8]));
    assert_eq!(size(apply(0.5, &crop(8))), Err(RecipeError::NoFixedSize));
    assert_eq!(size(apply(1.0, &crop(8))), Ok(vec![8, 8]));
    assert_eq!(size(format!("{}, {}", crop(8), apply(0.5, kept))), Ok(vec![8, 8]));
    let pad = r#"{"name": "Pad", "padding": [1, 2, 3, 4]}"#;
    assert_eq!(size(format!("{}, {pad}", crop(8))), Ok(vec![14, 12]));
    assert_eq!(size(format!("{}, {}", crop(8), apply(0.5, pad))), Err(RecipeError::NoFixedSize));
    let order = format!(r#"{{"name": "RandomOrder", "transforms": [{kept}, {pad}]}}"#);
    assert_eq!(size(format!("{}, {order}", crop(8))), Err(RecipeError::NoFixedSize));
    let order = |of: &str| format!(r#"{{"name": "RandomOrder", "transforms": [{of}]}}"#);
    assert_eq!(size(order(&format!("{}, {kept}", crop(8)))), Ok(vec![8, 8]));
    assert_eq!(size(order(&format!("{}, {}", crop(8), crop(9)))), Err(RecipeError::NoFixedSize));
    let convert = r#"{"name": "ToDtype", "dtype": "float32"}"#;
    let left_to_chance = size(format!("{}, {}", crop(8), apply(0.5, convert)));
    assert!(left_to_chance.unwrap_err().to_string().contains("cannot be left to chance"));
}
