//! Compiles the gateway protocol to Rust without an installed Protobuf compiler.

use std::error::Error;
use std::path::Path;

const DIRECTORY: &str = "proto";
const PROTOCOL: &str = "gateway.proto";

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-changed={DIRECTORY}");
    let mut compiler = protox::Compiler::new([DIRECTORY])?;
    compiler.open_file(PROTOCOL)?;
    let descriptor_file = Path::new(&std::env::var("OUT_DIR")?).join("gateway_descriptors.bin");
    std::fs::write(&descriptor_file, compiler.encode_file_descriptor_set())?;

    // The generated Rust carries the comments, the embedded descriptors do not.
    compiler.include_source_info(true);
    tonic_prost_build::configure()
        // The content of a resource is shared between the request and the log without copying it.
        .bytes(".gateway_protocol.Resource.content")
        .bytes(".gateway_protocol.ProcessRequestObject.definition")
        .compile_fds(compiler.file_descriptor_set())?;
    Ok(())
}
