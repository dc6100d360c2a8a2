//! Columns for people.

/// No cell is wider.
const WIDTH_MAX: usize = 60;

/// Lines with columns of the same width. The first row is that of the headings.
pub(crate) fn lines(rows: &[Vec<String>]) -> Vec<String> {
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

/// What does something to a terminal, or turns round what is written there.
fn is_hostile(character: char) -> bool {
    let turns =
        matches!(character, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    character.is_control() || turns
}

/// On one line and not too long. Control characters of others must not reach a terminal.
pub(super) fn shortened(text: &str) -> String {
    let mut plain = text.chars().map(|character| if is_hostile(character) { ' ' } else { character });
    let mut shown: String = plain.by_ref().take(WIDTH_MAX).collect();
    if plain.next().is_some() {
        shown.pop();
        shown.push('…');
    }
    shown
}

/// Without control characters, whatever its length.
pub(super) fn plain(text: &str) -> String {
    text.chars().map(|character| if is_hostile(character) { ' ' } else { character }).collect()
}

/// The same, of several lines.
pub(crate) fn plain_lines(text: &str) -> String {
    let tamed = |character| if is_hostile(character) && character != '\n' { ' ' } else { character };
    text.chars().map(tamed).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_aligned_and_what_is_long_or_hostile_is_tamed() {
        let row = |cells: [&str; 2]| cells.map(str::to_owned).to_vec();
        assert_eq!(lines(&[row(["key", "state"]), row(["12345", "ACTIVE"])]), ["key    state", "12345  ACTIVE"]);
        assert_eq!(shortened("a\u{1b}[2Jb\nc"), "a [2Jb c");
        assert_eq!(plain("a\u{202e}b\u{2066}c"), "a b c");
        assert_eq!(plain_lines("a\u{1b}[2J\nb\u{9b}"), "a [2J\nb ");
        let long = shortened(&"ü".repeat(100));
        assert_eq!((long.chars().count(), long.ends_with('…')), (WIDTH_MAX, true));
    }
}
