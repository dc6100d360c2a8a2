//! How long names in a model may be: keys of tables and every record hold them.

use roxmltree::Node;

use crate::model::StaticOrExpression;
use crate::report::Problems;

/// The longest name in bytes: ids of elements, processes and flows, names of variables, messages and jobs, codes, version
/// tags. A name that an expression gives is limited where it is made.
pub const NAME_BYTES_MAX: usize = 512;
/// The most names in the target of a mapping, as in `order.customer.name`: each makes a context inside the one before.
pub const MAPPING_TARGET_NAMES_MAX: usize = 64;

/// Reports the name in the attribute `attribute` of `node` if it is too long.
pub(crate) fn check(node: Node, attribute: &str, name: &str, problems: &mut Problems) {
    if name.len() > NAME_BYTES_MAX {
        problems.add_for_new(
            node,
            format!(
                "Attribute '{attribute}' must have at most {NAME_BYTES_MAX} bytes, but it has {}: '{}'. Choose a shorter name.",
                name.len(),
                beginning(name)
            ),
        );
    }
}

/// The same for a name that may be computed instead.
pub(crate) fn check_static(node: Node, attribute: &str, name: &StaticOrExpression, problems: &mut Problems) {
    if let StaticOrExpression::Static(name) = name {
        check(node, attribute, name, problems);
    }
}

/// Reports a mapping whose target has too many names, or one that is too long.
pub(crate) fn check_target(node: Node, path: &str, problems: &mut Problems) {
    let names = path.split('.').count();
    if names > MAPPING_TARGET_NAMES_MAX {
        problems.add_for_new(
            node,
            format!(
                "Attribute 'target' must have at most {MAPPING_TARGET_NAMES_MAX} names with dots between, but it has {names}: \
                 '{}'. Map to a variable further out.",
                beginning(path)
            ),
        );
    } else if let Some(name) = path.split('.').find(|name| name.len() > NAME_BYTES_MAX) {
        check(node, "target", name, problems);
    }
}

/// Enough of a long name to recognize it.
fn beginning(name: &str) -> String {
    const SHOWN_CHARACTERS: usize = 40;
    name.chars().take(SHOWN_CHARACTERS).chain(['…']).collect()
}
