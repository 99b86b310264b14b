//! A weighted sum of whole images: `torchvision.transforms.v2.AugMix`'s last step.

/// Values that are added up at a time.
const BLOCK: usize = 1024;

/// Writes the sum of `base` and the layers, each times its weight, rounded towards zero. All have as
/// many values as `out`, or more.
pub(super) fn add_up(base: (f32, &[u8]), layers: &[(f32, &[u8])], out: &mut [u8]) {
    let mut sums = [0.0_f32; BLOCK];
    for (block, out) in out.chunks_mut(BLOCK).enumerate() {
        let start = block * BLOCK;
        let sums = &mut sums[..out.len()];
        let (weight, values) = base;
        for (sum, value) in sums.iter_mut().zip(&values[start..]) {
            *sum = weight * f32::from(*value);
        }
        for (weight, values) in layers {
            for (sum, value) in sums.iter_mut().zip(&values[start..]) {
                *sum += weight * f32::from(*value);
            }
        }
        for (out, sum) in out.iter_mut().zip(&*sums) {
            *out = truncated(*sum);
        }
    }
}

#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "what is meant")]
fn truncated(sum: f32) -> u8 {
    sum as u8
}
