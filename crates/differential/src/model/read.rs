//! Reads the text of a model.

use super::{Item, Model, ModelError};

/// Reads a model; empty lines and lines that start with `#` are left out.
///
/// # Errors
/// When a line cannot be read, with its number.
pub fn read(text: &str) -> Result<Model, ModelError> {
    let mut root = Item::default();
    for (index, line) in text.lines().enumerate() {
        let content = line.trim_start();
        if content.is_empty() || content.starts_with('#') {
            continue;
        }
        let error = |problem: String| ModelError::Line { line: index + 1, problem };
        let indent = line.len() - content.len();
        if indent % 2 != 0 {
            return Err(error(format!("it is indented by {indent} spaces, which is not a multiple of 2")));
        }
        let item = read_item(content).map_err(error)?;
        let mut parent = &mut root;
        for _ in 0..indent / 2 {
            let Some(last) = parent.items.last_mut() else {
                return Err(error("it is indented deeper than the line before it allows".to_owned()));
            };
            parent = last;
        }
        parent.items.push(item);
    }
    Ok(Model { processes: root.items })
}

fn read_item(line: &str) -> Result<Item, String> {
    let mut words = words(line)?.into_iter();
    let keyword = words.next().unwrap_or_default();
    let mut item = Item::new(&keyword, "");
    for (index, word) in words.enumerate() {
        match word.split_once('=') {
            Some((name, value)) => item.attributes.push((name.to_owned(), unquoted(value).to_owned())),
            // A branch has no id, everything else has.
            None if index == 0 && keyword != "branch" => item.id = word,
            None => item.attributes.push((word, String::new())),
        }
    }
    Ok(item)
}

/// Splits at spaces that are not between backticks.
fn words(line: &str) -> Result<Vec<String>, String> {
    let mut words = vec![String::new()];
    let mut quoted = false;
    for character in line.chars() {
        match character {
            '`' => {
                quoted = !quoted;
                words.last_mut().expect("never empty").push(character);
            }
            ' ' if !quoted => words.push(String::new()),
            _ => words.last_mut().expect("never empty").push(character),
        }
    }
    if quoted {
        return Err("a backtick is not closed".to_owned());
    }
    words.retain(|word| !word.is_empty());
    Ok(words)
}

fn unquoted(value: &str) -> &str {
    value.strip_prefix('`').and_then(|value| value.strip_suffix('`')).unwrap_or(value)
}
