//! A statement that writes a row, or many.

/// The type of a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Of {
    Integer,
    Text,
}

impl Of {
    fn name(self) -> &'static str {
        match self {
            Of::Integer => "bigint",
            Of::Text => "text",
        }
    }
}

/// A statement with `{1}` to `{N}` for the values of a row.
#[derive(Debug, Clone)]
pub(crate) struct Write<const N: usize> {
    /// For the values of one row.
    pub for_one: String,
    /// For rows that are given to a file; none for what changes few rows.
    pub for_rows: Option<String>,
    /// For a list of values for each column, for a server.
    pub for_lists: String,
    /// What the values are.
    pub types: [Of; N],
}

impl<const N: usize> Write<N> {
    /// `INSERT INTO table(columns)`, what goes into them, and what follows.
    pub fn insert(types: [Of; N], into: &str, values: &str, then: &str) -> Write<N> {
        let lists = lists(&types);
        Write {
            for_one: with(&format!("{into} VALUES ({values}) {then}"), N, |number| format!("?{number}")),
            // Without a condition, what follows would be one of a join.
            for_rows: Some(with(&format!("{into} SELECT {values} FROM given(?1) WHERE TRUE {then}"), N, in_list)),
            for_lists: with(&format!("{into} SELECT {values} FROM {lists} {then}"), N, in_list),
            types,
        }
    }

    /// `UPDATE table SET something`, and for which row.
    pub fn update(types: [Of; N], update: &str, of: &str) -> Write<N> {
        let lists = lists(&types);
        Write {
            for_one: with(&format!("{update} WHERE {of}"), N, |number| format!("?{number}")),
            for_rows: None,
            for_lists: with(&format!("{update} FROM {lists} WHERE {of}"), N, in_list),
            types,
        }
    }

    /// Which rows of a table go.
    pub fn delete(types: [Of; N], table: &str, of: &str) -> Write<N> {
        let lists = lists(&types);
        Write {
            for_one: with(&format!("DELETE FROM {table} WHERE {of}"), N, |number| format!("?{number}")),
            for_rows: None,
            for_lists: with(&format!("DELETE FROM {table} USING {lists} WHERE {of}"), N, in_list),
            types,
        }
    }
}

fn in_list(number: usize) -> String {
    format!("given.v{number}")
}

fn lists(types: &[Of]) -> String {
    let each = |separator: &str, part: &dyn Fn(usize, Of) -> String| -> String {
        types.iter().enumerate().map(|(index, of)| part(index + 1, *of)).collect::<Vec<_>>().join(separator)
    };
    format!(
        "unnest({}) AS given({})",
        each(", ", &|number, of| format!("${number}::{}[]", of.name())),
        each(", ", &|number, _| format!("v{number}"))
    )
}

fn with(text: &str, count: usize, name: impl Fn(usize) -> String) -> String {
    (1..=count).fold(text.to_owned(), |text, number| text.replace(&format!("{{{number}}}"), &name(number)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_statement_is_written_for_one_row_and_for_many() {
        let insert = Write::insert(
            [Of::Integer, Of::Text],
            "INSERT INTO a(b, c)",
            "{1}, coalesce({2}, 'd')",
            "ON CONFLICT DO NOTHING",
        );
        assert_eq!(insert.for_one, "INSERT INTO a(b, c) VALUES (?1, coalesce(?2, 'd')) ON CONFLICT DO NOTHING");
        assert_eq!(
            insert.for_lists,
            "INSERT INTO a(b, c) SELECT given.v1, coalesce(given.v2, 'd') \
             FROM unnest($1::bigint[], $2::text[]) AS given(v1, v2) ON CONFLICT DO NOTHING"
        );
        assert_eq!(
            insert.for_rows.as_deref(),
            Some(
                "INSERT INTO a(b, c) SELECT given.v1, coalesce(given.v2, 'd') FROM given(?1) WHERE TRUE ON CONFLICT DO NOTHING"
            )
        );
        let delete = Write::delete([Of::Integer], "a", "c = {1}");
        assert_eq!(delete.for_one, "DELETE FROM a WHERE c = ?1");
        assert_eq!(delete.for_lists, "DELETE FROM a USING unnest($1::bigint[]) AS given(v1) WHERE c = given.v1");
        let update = Write::update([Of::Integer], "UPDATE a SET b = b + 1", "c = {1}");
        assert_eq!(
            update.for_lists,
            "UPDATE a SET b = b + 1 FROM unnest($1::bigint[]) AS given(v1) WHERE c = given.v1"
        );
    }
}
