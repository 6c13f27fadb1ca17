//! Writes the seeds of the fuzz targets from the golden vectors: `cargo run --example seeds`.
//!
//! Every golden message becomes a seed of `message`, and the body of every UPDATE one of `update`, on the
//! session of its vector.

use std::{fs, io, path::Path};

fn main() -> io::Result<()> {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let golden = here.join("../tests/golden/bgp");
    for file in
        ["carried.txt", "field-faults.txt", "session.txt", "sent.txt", "sr-policy.txt", "vpn.txt"]
    {
        let text = fs::read_to_string(golden.join(file))?;
        for vector in text.split("\n[").skip(1) {
            let Some((name, session)) = vector.lines().next().and_then(|head| head.split_once("] ")) else {
                continue;
            };
            let choice = match session {
                "A" => 3,
                "I" => 1,
                "2" => 2 | 16,
                "D" => 7 | 16,
                "L" => 3 | 8,
                "S" => 3 | 48,
                "P" => 7 | 48,
                "V" => 3 | 16 | 32,
                "W" => 7 | 16 | 32,
                _ => continue,
            };
            let octets: Vec<u8> =
                vector.lines().filter_map(|line| line.strip_prefix("> ")).flat_map(from_hex).collect();
            let name = name.to_lowercase().replace(' ', "-");
            write(&here.join("corpus/message"), &name, choice, &octets)?;
            if octets.get(18) == Some(&2) {
                write(&here.join("corpus/update"), &name, choice, &octets[19..])?;
            }
        }
    }
    Ok(())
}

fn from_hex(line: &str) -> Vec<u8> {
    let digits: Vec<u8> =
        line.chars().filter_map(|digit| digit.to_digit(16)).map(|digit| digit as u8).collect();
    digits.as_chunks::<2>().0.iter().map(|[high, low]| high << 4 | low).collect()
}

fn write(folder: &Path, name: &str, choice: u8, octets: &[u8]) -> io::Result<()> {
    fs::create_dir_all(folder)?;
    fs::write(folder.join(name), [&[choice], octets].concat())
}
