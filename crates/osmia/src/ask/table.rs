//! Columns for people.

/// No cell is wider.
const WIDTH_MAX: usize = 60;

/// Lines with columns of the same width. The first row is that of the headings.
pub(super) fn lines(rows: &[Vec<String>]) -> Vec<String> {
    let cells: Vec<Vec<String>> = rows.iter().map(|row| row.iter().map(|cell| shortened(cell)).collect()).collect();
    let mut widths: Vec<usize> = Vec::new();
    for row in &cells {
        widths.resize(widths.len().max(row.len()), 0);
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = (*width).max(cell.chars().count());
        }
    }
    let line = |row: &Vec<String>| {
        let cells: Vec<String> =
            row.iter().zip(&widths).map(|(cell, width)| format!("{cell:<width$}", width = *width)).collect();
        cells.join("  ").trim_end().to_owned()
    };
    cells.iter().map(line).collect()
}

/// On one line and not too long. Control characters of others must not reach a terminal.
pub(super) fn shortened(text: &str) -> String {
    let mut plain = text.chars().map(|character| if character.is_control() { ' ' } else { character });
    let mut shown: String = plain.by_ref().take(WIDTH_MAX).collect();
    if plain.next().is_some() {
        shown.pop();
        shown.push('…');
    }
    shown
}

/// Without control characters, whatever its length.
pub(super) fn plain(text: &str) -> String {
    text.chars().map(|character| if character.is_control() { ' ' } else { character }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_aligned_and_what_is_long_or_hostile_is_tamed() {
        let row = |cells: [&str; 2]| cells.map(str::to_owned).to_vec();
        assert_eq!(lines(&[row(["key", "state"]), row(["12345", "ACTIVE"])]), ["key    state", "12345  ACTIVE"]);
        assert_eq!(shortened("a\u{1b}[2Jb\nc"), "a [2Jb c");
        let long = shortened(&"ü".repeat(100));
        assert_eq!((long.chars().count(), long.ends_with('…')), (WIDTH_MAX, true));
    }
}
