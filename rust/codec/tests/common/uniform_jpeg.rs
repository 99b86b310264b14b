//! JPEGs of one colour, written marker by marker, for what the encoder cannot make.

/// One component: its sample everywhere, and its sampling factors.
#[derive(Clone, Copy)]
pub struct Component {
    pub value: u8,
    pub horizontal: u8,
    pub vertical: u8,
}

impl Component {
    pub fn flat(value: u8) -> Self {
        Self { value, horizontal: 1, vertical: 1 }
    }
}

/// A baseline JPEG; `adobe` adds an APP14 segment with this colour transform.
pub fn uniform(width: u16, height: u16, components: &[Component], adobe: Option<u8>) -> Vec<u8> {
    let count = components.len() as u8;
    let mut out = vec![0xff, 0xd8];
    if let Some(transform) = adobe {
        segment(
            &mut out,
            0xee,
            &[b"Adobe\0\x64\0\0\0\0".as_slice(), [transform].as_slice()].concat(),
        );
    }
    segment(&mut out, 0xdb, &[[0].as_slice(), [1; 64].as_slice()].concat());
    let mut frame = vec![8];
    frame.extend(height.to_be_bytes());
    frame.extend(width.to_be_bytes());
    frame.push(count);
    let mut scan = vec![count];
    for (id, component) in (1..).zip(components) {
        frame.extend([id, component.horizontal << 4 | component.vertical, 0]);
        scan.extend([id, 0]);
    }
    scan.extend([0, 63, 0]);
    segment(&mut out, 0xc0, &frame);
    // DC: the categories 0 to 11, four bits each. AC: end of block, one bit.
    let mut dc = vec![0x00, 0, 0, 0, 12, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    dc.extend(0..12);
    segment(&mut out, 0xc4, &dc);
    let mut ac = vec![0x10, 1];
    ac.extend([0; 16]);
    segment(&mut out, 0xc4, &ac);
    segment(&mut out, 0xda, &scan);
    out.extend(entropy_data(width, height, components));
    out.extend([0xff, 0xd9]);
    out
}

fn segment(out: &mut Vec<u8>, marker: u8, content: &[u8]) {
    out.extend([0xff, marker]);
    out.extend((content.len() as u16 + 2).to_be_bytes());
    out.extend(content);
}

fn entropy_data(width: u16, height: u16, components: &[Component]) -> Vec<u8> {
    let most = |factor: fn(&Component) -> u8| components.iter().map(factor).max().unwrap_or(1);
    let across = u32::from(width).div_ceil(8 * u32::from(most(|c| c.horizontal)));
    let down = u32::from(height).div_ceil(8 * u32::from(most(|c| c.vertical)));
    let mut bits = Bits::default();
    for mcu in 0..across * down {
        for component in components {
            for block in 0..component.horizontal * component.vertical {
                // The DC coefficient is eight times the sample, and coded as a difference.
                let first = mcu == 0 && block == 0;
                let dc = if first { 8 * (i32::from(component.value) - 128) } else { 0 };
                let category = 32 - dc.unsigned_abs().leading_zeros();
                bits.put(category, 4);
                let offset = if dc < 0 { (1 << category) - 1 } else { 0 };
                bits.put((dc + offset) as u32, category);
                bits.put(0, 1);
            }
        }
    }
    bits.finish()
}

#[derive(Default)]
struct Bits {
    out: Vec<u8>,
    pending: u32,
    count: u32,
}

impl Bits {
    fn put(&mut self, value: u32, count: u32) {
        for bit in (0..count).rev() {
            self.pending = self.pending << 1 | value >> bit & 1;
            self.count += 1;
            if self.count == 8 {
                let byte = self.pending as u8;
                self.out.push(byte);
                if byte == 0xff {
                    self.out.push(0);
                }
                (self.pending, self.count) = (0, 0);
            }
        }
    }

    fn finish(mut self) -> Vec<u8> {
        while self.count != 0 {
            self.put(1, 1);
        }
        self.out
    }
}
