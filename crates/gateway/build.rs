//! Takes what the page for trying the REST API needs out of the archive of its library, compressed as it is sent.

use std::error::Error;
use std::fs::File;
use std::io::{Cursor, Read, Write};
use std::path::Path;

use flate2::Compression;
use flate2::write::GzEncoder;
use utoipa_swagger_ui_vendored::SWAGGER_UI_VENDORED;
use zip::ZipArchive;

/// The end of the path in the archive, and the name here.
const FILES: [(&str, &str); 4] = [
    ("/dist/swagger-ui-bundle.js", "swagger-ui-bundle.js.gz"),
    ("/dist/swagger-ui.css", "swagger-ui.css.gz"),
    ("/LICENSE", "swagger-ui-license.gz"),
    ("/NOTICE", "swagger-ui-notice.gz"),
];

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-changed=build.rs");
    let directory = std::env::var("OUT_DIR")?;
    let mut archive = ZipArchive::new(Cursor::new(SWAGGER_UI_VENDORED))?;
    for (wanted, name) in FILES {
        // At the top of the archive, not of one of its flavors.
        let is_wanted = |path: &&str| path.split_once('/').is_some_and(|(_, rest)| format!("/{rest}") == wanted);
        let path =
            archive.file_names().find(is_wanted).ok_or_else(|| format!("{wanted} is not in the archive"))?.to_owned();
        let mut content = Vec::new();
        archive.by_name(&path)?.read_to_end(&mut content)?;
        let mut encoder = GzEncoder::new(File::create(Path::new(&directory).join(name))?, Compression::best());
        encoder.write_all(&content)?;
        encoder.finish()?;
    }
    Ok(())
}
