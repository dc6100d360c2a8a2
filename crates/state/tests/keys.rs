//! The order of encoded keys is the order of keys.

use std::fmt::Debug;
use std::sync::Arc;

use proptest::prelude::*;
use state::{SmallKey, TableKey};

fn encoded<K: TableKey>(key: &K) -> SmallKey {
    let mut bytes = SmallKey::new();
    key.encode(&mut bytes);
    bytes
}

fn check<K: TableKey + Debug>(first: &K, second: &K) -> Result<(), TestCaseError> {
    prop_assert_eq!(encoded(first).cmp(&encoded(second)), first.cmp(second));
    let bytes = encoded(first);
    let mut rest = bytes.as_slice();
    prop_assert_eq!(&K::decode(&mut rest).expect("an encoded key decodes"), first);
    prop_assert!(rest.is_empty());
    if let Some(length) = K::ENCODED_BYTES {
        prop_assert_eq!(bytes.len(), length);
    }
    prop_assert!(K::least() <= *first);
    for length in 0..bytes.len() {
        prop_assert!(K::decode(&mut &bytes[..length]).is_err(), "a key that is cut off must be refused");
    }
    Ok(())
}

/// Texts of the characters at which an escape could go wrong, so that shared beginnings are frequent.
fn text() -> impl Strategy<Value = String> {
    prop_oneof!["[\u{0}\u{1}\u{2}a\u{ff}\u{10ffff}]{0,5}", any::<String>()]
}

proptest! {
    #[test]
    fn integers(a in any::<(u64, i64, u16, i32)>(), b in any::<(u64, i64, u16, i32)>()) {
        check(&a, &b)?;
        check(&a.0, &b.0)?;
        check(&a.1, &b.1)?;
    }

    #[test]
    fn texts_in_tuples(
        a in (text(), text(), any::<bool>(), 0u8..3),
        b in (text(), text(), any::<bool>(), 0u8..3),
    ) {
        check(&a, &b)?;
        check(&a.0, &b.0)?;
        let shared = |key: (String, String, bool, u8)| (Arc::<str>::from(key.0), Arc::<str>::from(key.1), key.3);
        check(&shared(a.clone()), &shared(b.clone()))?;
        check(&(a.0, a.3), &(b.0, b.3))?;
    }
}
