//! Random decisions give what the stored outcomes of the reference's decision engine say, as far as they are not meant to
//! differ. The outcomes come from `make differential`; no reference engine is needed here.

use differential::tables::differences_from_stored;

#[test]
fn random_decisions_give_what_the_reference_gives() {
    let (count, differences) = differences_from_stored().unwrap_or_else(|failure| panic!("{failure}"));
    assert!(count >= 200, "there are outcomes");
    assert!(differences.is_empty(), "{} of {count} decisions differ:\n{}", differences.len(), differences.join("\n"));
}
