//! The header of a baseline JPEG, as far as its only scan needs it.

use forebay_core::{Region, Sampling, Size, ports};

/// Lookups have room for this many: two for DC, two for AC (table B.5 of the JPEG standard).
pub(super) const TABLES: usize = 4;
/// Blocks of an MCU, at most (B.2.3).
pub(super) const MOST_BLOCKS: usize = 10;
/// Pixels of a block, across and down.
const SIDE: u32 = 8;

const SOF_BASELINE: u8 = 0xc0;
const DHT: u8 = 0xc4;
const SOI: u8 = 0xd8;
const SOS: u8 = 0xda;
const DQT: u8 = 0xdb;
const DRI: u8 = 0xdd;
const APP_FIRST: u8 = 0xe0;
const APP_LAST: u8 = 0xef;
const COM: u8 = 0xfe;

/// Natural places, by zigzag places (figure A.6).
const NATURAL: [u8; 64] = [
    0, 1, 8, 16, 9, 2, 3, 10, 17, 24, 32, 25, 18, 11, 4, 5, 12, 19, 26, 33, 40, 48, 41, 34, 27, 20,
    13, 6, 7, 14, 21, 28, 35, 42, 49, 56, 57, 50, 43, 36, 29, 22, 15, 23, 30, 37, 44, 51, 58, 59,
    52, 45, 38, 31, 39, 46, 53, 60, 61, 54, 47, 55, 62, 63,
];

/// How many codes there are of each length, and what they stand for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Codes {
    pub(super) counts: [u8; 16],
    pub(super) symbols: [u8; 256],
}

impl Codes {
    const NONE: Self = Self { counts: [0; 16], symbols: [0; 256] };

    /// As libjpeg takes it: no code is all ones, and sizes fit (`jpeg_make_d_derived_tbl`).
    fn new(counts: [u8; 16], symbols: &[u8], is_dc: bool) -> Option<Self> {
        let mut code = 0_u32;
        for (length, count) in (1..).zip(counts) {
            code += u32::from(count);
            if code >= 1 << length {
                return None;
            }
            code <<= 1;
        }
        let mut codes = Self { counts, ..Self::NONE };
        codes.symbols.get_mut(..symbols.len())?.copy_from_slice(symbols);
        (!is_dc || symbols.iter().all(|&size| size <= 15)).then_some(codes)
    }
}

/// A component of the frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Component {
    id: u8,
    /// Blocks of an MCU, across and down.
    pub(super) across: u32,
    pub(super) down: u32,
    /// Tables of its codes.
    pub(super) dc: u8,
    pub(super) ac: u8,
    quantisation: [u16; 64],
}

/// A scan that the kernels can decode.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Scan {
    size: Size,
    kind: [Sampling; 3],
    pub(super) components: [Component; 3],
    pub(super) codes: [Codes; TABLES],
    data: usize,
}

/// What the segments so far say.
struct Seen {
    size: Option<Size>,
    components: [Component; 3],
    /// Number of each component's quantisation.
    quantisation: [usize; 3],
    steps: [Option<[u16; 64]>; 4],
    codes: [Option<Codes>; TABLES],
}

impl Scan {
    /// Reads the header of a file; `None` if its data is nothing for the kernels: not baseline, not
    /// one scan of three components, with restart markers, or with tables that libjpeg refuses.
    ///
    /// `kind` is how the probe found the components to be sampled.
    pub fn parse(file: &[u8], kind: [Sampling; 3]) -> Option<Self> {
        let (scan, restarts) = Self::header(file, kind)?;
        (!restarts && scan.is_worth_it(file.len() - scan.data)).then_some(scan)
    }

    /// Whether libjpeg takes a file's header, as far as this knows: others are for it to judge.
    pub fn is_plain(file: &[u8], kind: [Sampling; 3]) -> bool {
        Self::header(file, kind).is_some()
    }

    /// What segments say up to the scan's data, and whether that has restart markers.
    fn header(file: &[u8], kind: [Sampling; 3]) -> Option<(Self, bool)> {
        let mut restarts = false;
        let none = Component { id: 0, across: 0, down: 0, dc: 0, ac: 0, quantisation: [0; 64] };
        let mut seen = Seen {
            size: None,
            components: [none; 3],
            quantisation: [0; 3],
            steps: [None; 4],
            codes: [None; TABLES],
        };
        let mut rest = file.strip_prefix(&[0xff, SOI])?;
        loop {
            let (&[0xff, marker, high, low], _) = rest.split_first_chunk()? else { return None };
            let length = usize::from(u16::from_be_bytes([high, low]));
            let segment = rest.get(4..2 + length)?;
            rest = &rest[2 + length..];
            match marker {
                SOF_BASELINE => seen.frame(segment)?,
                DHT => seen.huffman(segment)?,
                DQT => seen.quantisation(segment)?,
                DRI => restarts = <[u8; 2]>::try_from(segment).ok()? != [0, 0],
                APP_FIRST..=APP_LAST | COM => {}
                SOS => {
                    return Some((seen.scan(segment, file.len() - rest.len(), kind)?, restarts));
                }
                _ => return None,
            }
        }
    }

    /// Whether so many bytes of data can be all of it, as a block is two bits at least, and tables
    /// tell blocks of an MCU apart: else threads never fall into step.
    fn is_worth_it(&self, bytes: usize) -> bool {
        let [first, others @ ..] = self.components.map(|of| (of.dc, of.ac));
        u64::from(self.blocks()) <= 4 * bytes as u64 && others.iter().any(|of| *of != first)
    }

    /// The size of the whole image.
    pub fn size(&self) -> Size {
        self.size
    }

    /// Blocks that hold the samples of `region` and a neighbour of each, by component, and the bytes
    /// of their coefficients. As threads do, whose windows are `fb_jpeg_start_window`'s.
    pub fn window(&self, region: Region) -> ([ports::Blocks; 3], usize) {
        let (most_across, most_down) = self.most();
        let [x, across] = within(region.x, region.width, most_across, self.size.width);
        let [y, down] = within(region.y, region.height, most_down, self.size.height);
        let mut offset = 0;
        let blocks = [0, 1, 2].map(|place| {
            let of = &self.components[place];
            let blocks = ports::Blocks {
                sampling: self.kind[place],
                offset,
                x: x * of.across,
                y: y * of.down,
                across: across * of.across,
                down: down * of.down,
                quantisation: of.quantisation,
            };
            offset += blocks.across as usize * blocks.down as usize * size_of::<[i16; 64]>();
            blocks
        });
        (blocks, offset)
    }

    /// Where its data begins in the file.
    pub fn data(&self) -> usize {
        self.data
    }

    /// MCUs in a row.
    pub(super) fn mcus_across(&self) -> u32 {
        self.size.width.div_ceil(SIDE * self.most().0)
    }

    /// Blocks of the whole scan.
    pub(super) fn blocks(&self) -> u32 {
        let mcu: u32 = self.components.iter().map(|of| of.across * of.down).sum();
        self.mcus_across() * self.size.height.div_ceil(SIDE * self.most().1) * mcu
    }

    fn most(&self) -> (u32, u32) {
        let most =
            |(across, down): (u32, u32), of: &Component| (across.max(of.across), down.max(of.down));
        self.components.iter().fold((1, 1), most)
    }
}

/// First and number of the MCUs of `most` blocks along an axis of `size` pixels that hold pixels
/// `from` on, and as many more on both sides as a sample may be wide.
fn within(from: u32, length: u32, most: u32, size: u32) -> [u32; 2] {
    let step = SIDE * most;
    let first = from.saturating_sub(most) / step;
    let end = (from + length + most).div_ceil(step).min(size.div_ceil(step));
    [first, end - first]
}

impl Seen {
    fn frame(&mut self, segment: &[u8]) -> Option<()> {
        let &[8, h1, h0, w1, w0, 3, ref parts @ ..] = segment else { return None };
        let height = u32::from(u16::from_be_bytes([h1, h0]));
        let width = u32::from(u16::from_be_bytes([w1, w0]));
        if self.size.is_some() || width == 0 || height == 0 || parts.len() != 9 {
            return None;
        }
        self.size = Some(Size { width, height });
        for (place, part) in parts.chunks_exact(3).enumerate() {
            let of = &mut self.components[place];
            (of.id, of.across, of.down) = (part[0], (part[1] >> 4).into(), (part[1] & 15).into());
            self.quantisation[place] = part[2].into();
        }
        Some(())
    }

    fn quantisation(&mut self, mut segment: &[u8]) -> Option<()> {
        while let Some((&head, rest)) = segment.split_first() {
            let wide = head >> 4 != 0;
            let (steps, rest) = rest.split_at_checked(if wide { 128 } else { 64 })?;
            let mut natural = [0; 64];
            for (place, to) in NATURAL.into_iter().enumerate() {
                natural[usize::from(to)] = if wide {
                    u16::from_be_bytes([steps[2 * place], steps[2 * place + 1]])
                } else {
                    steps[place].into()
                };
            }
            *self.steps.get_mut(usize::from(head & 15))? = Some(natural);
            segment = rest;
        }
        Some(())
    }

    fn huffman(&mut self, mut segment: &[u8]) -> Option<()> {
        while let Some((&head, rest)) = segment.split_first() {
            let (counts, rest) = rest.split_first_chunk::<16>()?;
            let codes = counts.iter().map(|&count| usize::from(count)).sum();
            let (symbols, rest) = rest.split_at_checked(codes)?;
            let is_dc = head >> 4 == 0;
            let place = match head {
                0 | 1 => usize::from(head),
                0x10 | 0x11 => 2 + usize::from(head & 1),
                _ => return None,
            };
            self.codes[place] = Some(Codes::new(*counts, symbols, is_dc)?);
            segment = rest;
        }
        Some(())
    }

    fn scan(mut self, segment: &[u8], data: usize, kind: [Sampling; 3]) -> Option<Scan> {
        let &[3, ref parts @ .., 0, 63, 0] = segment else { return None };
        let (&[a, b, c], []) = parts.as_chunks::<2>() else { return None };
        let mut order = [0; 3];
        for (place, [id, tables]) in order.iter_mut().zip([a, b, c]) {
            *place = self.components.iter().position(|of| of.id == id)?;
            let of = &mut self.components[*place];
            (of.dc, of.ac) = (tables >> 4, 2 + (tables & 15));
            of.quantisation = (*self.steps.get(self.quantisation[*place])?)?;
            for number in [of.dc, of.ac] {
                (*self.codes.get(usize::from(number))?)?;
            }
            if of.dc > 1 {
                return None;
            }
        }
        let blocks = self.components.map(|of| of.across * of.down);
        let fits = blocks.iter().sum::<u32>() as usize <= MOST_BLOCKS && !blocks.contains(&0);
        let size = self.size?;
        // libjpeg refuses any other order.
        (fits && order == [0, 1, 2]).then(|| Scan {
            size,
            kind,
            components: self.components,
            codes: self.codes.map(|codes| codes.unwrap_or(Codes::NONE)),
            data,
        })
    }
}
