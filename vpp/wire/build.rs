//! Declares what VPP's catalogue has and no file of `src` declares by hand: messages, and the types in them, as
//! `messages!`, `wire_struct!` and `wire_int!` lists, one file for each API module, which `src/api/<module>.rs` includes.
//!
//! * `build/catalogue.rs` reads the catalogue
//! * `build/choices.rs` has what the catalogue does not say: which types are written by hand, which fields are keys, which
//!   requests are only built by constructors, which are never sent
//! * `build/prose.rs` makes names and documentation
//! * `build/types.rs` and `build/messages.rs` write the declarations

#[path = "build/catalogue.rs"]
mod catalogue;
#[path = "build/choices.rs"]
mod choices;
#[path = "build/messages.rs"]
mod messages;
#[path = "build/prose.rs"]
mod prose;
#[path = "build/types.rs"]
mod types;

use std::path::{Path, PathBuf};

use catalogue::Catalogue;
use types::Types;

const CATALOGUE: &str = "../catalogue/messages.json";

fn main() {
    for path in [CATALOGUE, "src/api", "build.rs", "build"] {
        println!("cargo::rerun-if-changed={path}");
    }
    let text = std::fs::read_to_string(CATALOGUE).expect("the catalogue is beside this crate");
    let catalogue = Catalogue::parse(&text);
    let types = Types::of(&catalogue);
    let out = PathBuf::from(std::env::var_os("OUT_DIR").expect("cargo sets it"));
    write(&out, "types", &types.declare(None));
    for module in catalogue.modules() {
        let source = std::fs::read_to_string(format!("src/api/{module}.rs"))
            .unwrap_or_else(|error| panic!("src/api/{module}.rs, a file for each API module: {error}"));
        let mut declared = types.declare(Some(module));
        declared += &messages::declare(&catalogue, &types, module, &source);
        write(&out, module, &declared);
    }
}

fn write(out: &Path, name: &str, text: &str) {
    std::fs::write(out.join(format!("{name}.rs")), text).expect("OUT_DIR can be written");
}
