//! Table segments that no scan uses, checked by libjpeg's rules and in its words (`jdmarker.c`).

use super::jpeg::{DAC, DHT, DQT, DRI};
use crate::Error;

/// Tables of each kind.
const TABLES: u8 = 4;

/// Refuses the content of a table segment that libjpeg refuses; other segments pass.
pub(super) fn check(marker: u8, segment: &[u8]) -> Result<(), Error> {
    match marker {
        DQT => quantization(segment),
        DHT => huffman(segment),
        DAC => arithmetic(segment),
        DRI if segment.len() != 2 => Err(bad_length()),
        _ => Ok(()),
    }
}

fn bad_length() -> Error {
    Error::jpeg("Bogus marker length")
}

fn quantization(mut segment: &[u8]) -> Result<(), Error> {
    while let Some((&head, rest)) = segment.split_first() {
        if head & 15 >= TABLES {
            return Err(Error::jpeg(format!("Bogus DQT index {}", head & 15)));
        }
        let bytes = if head >> 4 == 0 { 64 } else { 128 };
        segment = rest.get(bytes..).ok_or_else(bad_length)?;
    }
    Ok(())
}

fn huffman(mut segment: &[u8]) -> Result<(), Error> {
    while segment.len() > 16 {
        let counts = &segment[1..17];
        let codes = counts.iter().map(|&count| usize::from(count)).sum();
        if codes > 256 || segment.len() - 17 < codes {
            return Err(Error::jpeg("Bogus Huffman table definition"));
        }
        // 16 is added for AC tables.
        let index = segment[0];
        if index & !16 >= TABLES {
            return Err(Error::jpeg(format!("Bogus DHT index {}", index & !16)));
        }
        segment = &segment[17 + codes..];
    }
    if segment.is_empty() { Ok(()) } else { Err(bad_length()) }
}

fn arithmetic(segment: &[u8]) -> Result<(), Error> {
    const INDICES: u8 = 32;
    for pair in segment.chunks(2) {
        let &[index, value] = pair else { return Err(bad_length()) };
        if index >= INDICES {
            return Err(Error::jpeg(format!("Bogus DAC index {index}")));
        }
        if index < INDICES / 2 && value & 15 > value >> 4 {
            return Err(Error::jpeg(format!("Bogus DAC value 0x{value:x}")));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn verdict(marker: u8, segment: &[u8]) -> String {
        check(marker, segment).map_or_else(|error| error.to_string(), |()| "good".to_owned())
    }

    #[test]
    fn tables_are_judged_as_libjpeg_does() {
        assert_eq!(verdict(DQT, &[[0; 65], [3; 65]].concat()), "good");
        assert_eq!(verdict(DQT, &[[0x13; 129].to_vec(), vec![0; 65]].concat()), "good");
        assert_eq!(verdict(DQT, &[0; 64]), "damaged JPEG: Bogus marker length");
        assert_eq!(verdict(DQT, &[0x0f, 0]), "damaged JPEG: Bogus DQT index 15");
        let table = [[0x13, 1].to_vec(), vec![0; 15], vec![9]].concat();
        assert_eq!(verdict(DHT, &table.repeat(2)), "good");
        assert_eq!(verdict(DHT, &[0; 16]), "damaged JPEG: Bogus marker length");
        assert_eq!(verdict(DHT, &table[..17]), "damaged JPEG: Bogus Huffman table definition");
        let wrong = [[0x14, 0].to_vec(), vec![0; 15]].concat();
        assert_eq!(verdict(DHT, &wrong), "damaged JPEG: Bogus DHT index 4");
        assert_eq!(verdict(DAC, &[0, 0x10, 16, 5]), "good");
        assert_eq!(verdict(DAC, &[0, 0x01]), "damaged JPEG: Bogus DAC value 0x1");
        assert_eq!(verdict(DAC, &[32, 0]), "damaged JPEG: Bogus DAC index 32");
        assert_eq!(verdict(DAC, &[0]), "damaged JPEG: Bogus marker length");
        assert_eq!(verdict(DRI, &[0, 4]), "good");
        assert_eq!(verdict(DRI, &[0]), "damaged JPEG: Bogus marker length");
        assert_eq!(verdict(0xe0, &[0]), "good");
    }
}
