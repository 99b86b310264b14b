//! `AutoAugment`'s policies.

use super::Op;
use crate::recipe::spec::Policy;

/// Two transforms, each with its probability in tenths and the place of its magnitude.
pub(super) type Pair = [(Op, u8, u32); 2];

/// `AutoAugment._get_policies`.
pub(super) fn policies(policy: Policy) -> &'static [Pair] {
    match policy {
        Policy::ImageNet => &IMAGENET,
        Policy::Cifar10 => &CIFAR10,
        Policy::Svhn => &SVHN,
    }
}

#[rustfmt::skip]
const IMAGENET: [Pair; 25] = [
    [(Op::Posterize, 4, 8), (Op::Rotate, 6, 9)],
    [(Op::Solarize, 6, 5), (Op::AutoContrast, 6, 0)],
    [(Op::Equalize, 8, 0), (Op::Equalize, 6, 0)],
    [(Op::Posterize, 6, 7), (Op::Posterize, 6, 6)],
    [(Op::Equalize, 4, 0), (Op::Solarize, 2, 4)],
    [(Op::Equalize, 4, 0), (Op::Rotate, 8, 8)],
    [(Op::Solarize, 6, 3), (Op::Equalize, 6, 0)],
    [(Op::Posterize, 8, 5), (Op::Equalize, 10, 0)],
    [(Op::Rotate, 2, 3), (Op::Solarize, 6, 8)],
    [(Op::Equalize, 6, 0), (Op::Posterize, 4, 6)],
    [(Op::Rotate, 8, 8), (Op::Color, 4, 0)],
    [(Op::Rotate, 4, 9), (Op::Equalize, 6, 0)],
    [(Op::Equalize, 0, 0), (Op::Equalize, 8, 0)],
    [(Op::Invert, 6, 0), (Op::Equalize, 10, 0)],
    [(Op::Color, 6, 4), (Op::Contrast, 10, 8)],
    [(Op::Rotate, 8, 8), (Op::Color, 10, 2)],
    [(Op::Color, 8, 8), (Op::Solarize, 8, 7)],
    [(Op::Sharpness, 4, 7), (Op::Invert, 6, 0)],
    [(Op::ShearX, 6, 5), (Op::Equalize, 10, 0)],
    [(Op::Color, 4, 0), (Op::Equalize, 6, 0)],
    [(Op::Equalize, 4, 0), (Op::Solarize, 2, 4)],
    [(Op::Solarize, 6, 5), (Op::AutoContrast, 6, 0)],
    [(Op::Invert, 6, 0), (Op::Equalize, 10, 0)],
    [(Op::Color, 6, 4), (Op::Contrast, 10, 8)],
    [(Op::Equalize, 8, 0), (Op::Equalize, 6, 0)],
];

#[rustfmt::skip]
const CIFAR10: [Pair; 25] = [
    [(Op::Invert, 1, 0), (Op::Contrast, 2, 6)],
    [(Op::Rotate, 7, 2), (Op::TranslateX, 3, 9)],
    [(Op::Sharpness, 8, 1), (Op::Sharpness, 9, 3)],
    [(Op::ShearY, 5, 8), (Op::TranslateY, 7, 9)],
    [(Op::AutoContrast, 5, 0), (Op::Equalize, 9, 0)],
    [(Op::ShearY, 2, 7), (Op::Posterize, 3, 7)],
    [(Op::Color, 4, 3), (Op::Brightness, 6, 7)],
    [(Op::Sharpness, 3, 9), (Op::Brightness, 7, 9)],
    [(Op::Equalize, 6, 0), (Op::Equalize, 5, 0)],
    [(Op::Contrast, 6, 7), (Op::Sharpness, 6, 5)],
    [(Op::Color, 7, 7), (Op::TranslateX, 5, 8)],
    [(Op::Equalize, 3, 0), (Op::AutoContrast, 4, 0)],
    [(Op::TranslateY, 4, 3), (Op::Sharpness, 2, 6)],
    [(Op::Brightness, 9, 6), (Op::Color, 2, 8)],
    [(Op::Solarize, 5, 2), (Op::Invert, 0, 0)],
    [(Op::Equalize, 2, 0), (Op::AutoContrast, 6, 0)],
    [(Op::Equalize, 2, 0), (Op::Equalize, 6, 0)],
    [(Op::Color, 9, 9), (Op::Equalize, 6, 0)],
    [(Op::AutoContrast, 8, 0), (Op::Solarize, 2, 8)],
    [(Op::Brightness, 1, 3), (Op::Color, 7, 0)],
    [(Op::Solarize, 4, 5), (Op::AutoContrast, 9, 0)],
    [(Op::TranslateY, 9, 9), (Op::TranslateY, 7, 9)],
    [(Op::AutoContrast, 9, 0), (Op::Solarize, 8, 3)],
    [(Op::Equalize, 8, 0), (Op::Invert, 1, 0)],
    [(Op::TranslateY, 7, 9), (Op::AutoContrast, 9, 0)],
];

#[rustfmt::skip]
const SVHN: [Pair; 25] = [
    [(Op::ShearX, 9, 4), (Op::Invert, 2, 0)],
    [(Op::ShearY, 9, 8), (Op::Invert, 7, 0)],
    [(Op::Equalize, 6, 0), (Op::Solarize, 6, 6)],
    [(Op::Invert, 9, 0), (Op::Equalize, 6, 0)],
    [(Op::Equalize, 6, 0), (Op::Rotate, 9, 3)],
    [(Op::ShearX, 9, 4), (Op::AutoContrast, 8, 0)],
    [(Op::ShearY, 9, 8), (Op::Invert, 4, 0)],
    [(Op::ShearY, 9, 5), (Op::Solarize, 2, 6)],
    [(Op::Invert, 9, 0), (Op::AutoContrast, 8, 0)],
    [(Op::Equalize, 6, 0), (Op::Rotate, 9, 3)],
    [(Op::ShearX, 9, 4), (Op::Solarize, 3, 3)],
    [(Op::ShearY, 8, 8), (Op::Invert, 7, 0)],
    [(Op::Equalize, 9, 0), (Op::TranslateY, 6, 6)],
    [(Op::Invert, 9, 0), (Op::Equalize, 6, 0)],
    [(Op::Contrast, 3, 3), (Op::Rotate, 8, 4)],
    [(Op::Invert, 8, 0), (Op::TranslateY, 0, 2)],
    [(Op::ShearY, 7, 6), (Op::Solarize, 4, 8)],
    [(Op::Invert, 6, 0), (Op::Rotate, 8, 4)],
    [(Op::ShearY, 3, 7), (Op::TranslateX, 9, 3)],
    [(Op::ShearX, 1, 6), (Op::Invert, 6, 0)],
    [(Op::Solarize, 7, 2), (Op::TranslateY, 6, 7)],
    [(Op::ShearY, 8, 4), (Op::Invert, 8, 0)],
    [(Op::ShearX, 7, 9), (Op::TranslateY, 8, 3)],
    [(Op::ShearY, 8, 5), (Op::AutoContrast, 7, 0)],
    [(Op::ShearX, 7, 2), (Op::Invert, 1, 0)],
];
