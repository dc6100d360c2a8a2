//! The tables of Unicode, which come with the standard library and with the library of patterns: they decide which letters are
//! upper case, what a space is and what a pattern matches, so the same expression has another value with other tables.

/// The release of Unicode by which cases change and names are read.
pub const VERSION: (u8, u8, u8) = char::UNICODE_VERSION;

#[cfg(test)]
mod tests {
    use regex_syntax::hir::{Class, HirKind};

    use super::*;

    /// FNV-1a, which is the same everywhere.
    struct Hash(u64);

    impl Hash {
        fn add(&mut self, number: u32) {
            for byte in number.to_le_bytes() {
                self.0 = (self.0 ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3);
            }
        }
    }

    /// Whoever gets another number here has other tables: values of expressions change with them. They belong to a new feature
    /// level (`engine/src/feature_level.rs`), and the older levels must keep the older ones.
    #[test]
    fn the_tables_are_those_of_all_feature_levels() {
        let mut letters = Hash(0xcbf2_9ce4_8422_2325);
        for letter in '\0'..=char::MAX {
            let kinds = [letter.is_whitespace(), letter.is_alphabetic(), letter.is_alphanumeric(), letter.is_numeric()];
            kinds.into_iter().for_each(|is| letters.add(u32::from(is)));
            letter.to_uppercase().chain(letter.to_lowercase()).for_each(|changed| letters.add(u32::from(changed)));
        }
        let mut classes = Hash(0xcbf2_9ce4_8422_2325);
        let names = "L Lu Ll Lt Lm Lo M Mn Mc Me N Nd Nl No P Pc Pd Ps Pe Pi Pf Po S Sm Sc Sk So Z Zs C Cc Cf Co Cn";
        let scripts =
            "Latin Greek Cyrillic Han Hiragana Katakana Arabic Hebrew Thai Hangul Alphabetic Uppercase White_Space";
        let named = names.split(' ').chain(scripts.split(' ')).map(|name| format!("\\p{{{name}}}"));
        for pattern in named.chain([r"\w", r"\d", r"\s", r"(?i)\p{Lu}", r"(?i)k"].map(str::to_owned)) {
            let parsed = regex_syntax::parse(&pattern).unwrap_or_else(|error| panic!("{pattern}: {error}"));
            let HirKind::Class(Class::Unicode(class)) = parsed.kind() else { panic!("{pattern} is no class") };
            for range in class.iter() {
                classes.add(u32::from(range.start()));
                classes.add(u32::from(range.end()));
            }
        }
        assert_eq!((VERSION, letters.0, classes.0), ((17, 0, 0), 0xd51c_f25a_2ba0_051d, 0x181a_6632_660a_e2e3));
    }
}
