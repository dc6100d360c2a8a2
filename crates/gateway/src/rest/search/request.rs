//! The bodies of searches.

use readmodel::query::{Condition, Cursor, Direction, Entity, GroupPage, GroupStart, Kind, Page, Search, Sort};

use super::answer::Sorts;
use super::filter;
use crate::rest::object::{Object, invalid};
use crate::rest::problem::Problem;
use crate::validation::excerpt;

const LIMIT_MAX: i32 = 10_000;
/// So many rows are on a page that does not say how many.
const LIMIT_USUAL: u32 = 100;
/// More fields cannot be sorted by.
const SORTS_MAX: usize = 10;

/// What a body asks for.
pub(super) fn search(entity: &'static Entity, body: &[u8]) -> Result<Search, Problem> {
    let mut object = Object::read(body)?;
    let filter: Option<Object<'_>> = object.take("filter")?;
    let sort = take_sorts(&mut object)?.into_iter().map(|sort| self::sort(entity, sort));
    let sort: Vec<Sort> = sort.collect::<Result<_, _>>()?;
    let page: Option<Object<'_>> = object.take("page")?;
    object.finish()?;
    let condition = filter.map(|filter| filter::read(entity, filter)).transpose()?;
    let mut search = Search::new(entity, condition.unwrap_or_else(Condition::always));
    search.sort = sort;
    if let Some(page) = page {
        self::page(&mut search, page)?;
    }
    Ok(search)
}

/// Which of the groups that something was counted in are wanted, and in which order; in the usual one without any.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Groups {
    /// Names of what groups have, and whether the largest comes first.
    pub sort: Vec<(String, bool)>,
    pub page: GroupPage,
}

/// What is left of a body without its filter, where groups can be ordered by what has one of these names. Their cursors,
/// if they have any, are for values of this kind.
pub(super) fn groups(mut object: Object<'_>, sorts: Sorts, cursors: Option<Kind>) -> Result<Groups, Problem> {
    let mut sort = Vec::new();
    for given in take_sorts(&mut object)? {
        let (name, descending) = order(given)?;
        if !sorts.0.contains(&name.as_str()) {
            return Err(unknown_sort(&name));
        }
        sort.push((name, descending));
    }
    let page = object.take("page")?.map(Paging::read).transpose()?.unwrap_or_default();
    object.finish()?;
    let start = match (page.start, cursors) {
        (PagingStart::First, _) => GroupStart::First,
        (PagingStart::From(from), _) => GroupStart::From(from),
        (PagingStart::At(Direction::After, after), Some(kind)) => GroupStart::After(cursor(&after, [kind])?),
        (PagingStart::At(Direction::Before, _), Some(_)) => {
            return Err(invalid("This search goes forward only. Use page.after."));
        }
        (PagingStart::At(..), None) => {
            return Err(invalid("This search has no cursors. Use page.from to go further."));
        }
    };
    Ok(Groups { sort, page: GroupPage { start, limit: page.limit } })
}

fn take_sorts<'a>(object: &mut Object<'a>) -> Result<Vec<Object<'a>>, Problem> {
    let sort = object.take_objects("sort")?;
    if sort.len() > SORTS_MAX {
        return Err(invalid(format!(
            "The search is sorted by {} fields, but at most {SORTS_MAX} are possible.",
            sort.len()
        )));
    }
    Ok(sort)
}

fn unknown_sort(name: &str) -> Problem {
    invalid(format!("Unknown sortBy: {}.", excerpt(name)))
}

fn sort(entity: &'static Entity, given: Object<'_>) -> Result<Sort, Problem> {
    let (name, descending) = order(given)?;
    let field = entity.field(&name).filter(|field| field.is_sortable).ok_or_else(|| unknown_sort(&name))?;
    Ok(Sort { field, descending })
}

/// A name, and whether the largest comes first.
fn order(mut sort: Object<'_>) -> Result<(String, bool), Problem> {
    let name: String = sort.take("field")?.ok_or_else(|| invalid("Sort field must not be null."))?;
    let descending = match sort.take::<String>("order")?.as_deref() {
        None | Some("ASC" | "asc") => false,
        Some("DESC" | "desc") => true,
        Some(other) => {
            return Err(Problem::bad_request(format!(
                "Unexpected value '{}' for enum field 'order'. Use any of the following values: [ASC, DESC]",
                excerpt(other)
            )));
        }
    };
    sort.finish()?;
    Ok((name, descending))
}

/// A page as a body asks for it.
struct Paging {
    start: PagingStart,
    limit: u32,
}

enum PagingStart {
    First,
    From(u32),
    /// A cursor that was not read yet.
    At(Direction, String),
}

impl Default for Paging {
    fn default() -> Paging {
        Paging { start: PagingStart::First, limit: LIMIT_USUAL }
    }
}

impl Paging {
    fn read(mut page: Object<'_>) -> Result<Paging, Problem> {
        let limit: Option<i32> = page.take("limit")?;
        let from: Option<i32> = page.take("from")?;
        let after: Option<String> = page.take("after")?;
        let before: Option<String> = page.take("before")?;
        page.finish()?;
        let within = |name: &str, value: i32, least: i32| match u32::try_from(value) {
            Ok(number) if (least..=LIMIT_MAX).contains(&value) => Ok(number),
            _ => Err(invalid(format!(
                "The value for page.{name} is '{value}' but must be from {least} to {LIMIT_MAX}. Use a cursor to go further."
            ))),
        };
        let limit = limit.map_or(Ok(LIMIT_USUAL), |limit| within("limit", limit, 1))?;
        let start = match (from, after, before) {
            (None, None, None) => PagingStart::First,
            (Some(from), None, None) => {
                let from = within("from", from, 0)?;
                if from + limit > LIMIT_MAX.unsigned_abs() {
                    return Err(invalid(format!(
                        "page.from and page.limit together are {}, but must not be more than {LIMIT_MAX}. Use a cursor to go further.",
                        from + limit
                    )));
                }
                PagingStart::From(from)
            }
            (None, Some(after), None) => PagingStart::At(Direction::After, after),
            (None, None, Some(before)) => PagingStart::At(Direction::Before, before),
            (None, Some(_), Some(_)) => {
                return Err(invalid("Both searchAfter and searchBefore cannot be set at the same time."));
            }
            (Some(_), _, _) => {
                return Err(invalid("Only one of [page.from, page.after, page.before] is allowed."));
            }
        };
        Ok(Paging { start, limit })
    }
}

fn page(search: &mut Search, page: Object<'_>) -> Result<(), Problem> {
    let page = Paging::read(page)?;
    search.limit = page.limit;
    search.page = match page.start {
        PagingStart::First => Page::First,
        PagingStart::From(from) => Page::From(from),
        PagingStart::At(direction, given) => {
            Page::At(direction, cursor(&given, search.sort.iter().map(|sort| sort.field.kind))?)
        }
    };
    Ok(())
}

fn cursor(given: &str, kinds: impl IntoIterator<Item = Kind>) -> Result<Cursor, Problem> {
    Cursor::decode(given, kinds).ok_or_else(|| {
        invalid(format!(
            "The cursor '{}' is none that an answer to a search with this sort had. Begin again without a cursor.",
            excerpt(given)
        ))
    })
}

#[cfg(test)]
mod tests {
    use readmodel::query::PROCESS_INSTANCES;

    use super::*;

    #[test]
    fn all_forms_of_pages_are_read() {
        let read = |body: &str| search(&PROCESS_INSTANCES, body.as_bytes());
        let (usual, page) =
            (read("").expect("empty"), read(r#"{"page":{"from":5,"limit":7},"sort":[]}"#).expect("a page"));
        assert_eq!((usual.page, usual.limit), (Page::First, 100));
        assert_eq!((page.page, page.limit), (Page::From(5), 7));
        let sorted = read(r#"{"sort":[{"field":"startDate","order":"DESC"},{"field":"state"}]}"#).expect("sorted");
        assert_eq!(
            sorted.sort.iter().map(|sort| (sort.field.name, sort.descending)).collect::<Vec<_>>(),
            [("startDate", true), ("state", false)]
        );
    }

    #[test]
    fn groups_go_on_behind_a_cursor_where_they_have_any() {
        let read = |body: &str, kind| {
            groups(Object::read(body.as_bytes()).expect("an object"), Sorts::NONE, kind).map(|groups| groups.page.start)
        };
        // What an answer had: a text, and the place of no row.
        let after = r#"{"page":{"after":"WyJhIiwwLDBd"}}"#;
        assert!(matches!(read(after, Some(Kind::Text)), Ok(GroupStart::After(_))));
        for (body, kind, detail) in [
            (after, Some(Kind::Instant), "is none that an answer"),
            (after, None, "This search has no cursors."),
            (r#"{"page":{"before":"WyJhIiwwLDBd"}}"#, Some(Kind::Text), "goes forward only"),
        ] {
            let problem = read(body, kind).expect_err(body);
            assert!(problem.detail.contains(detail), "{problem:?}");
        }
    }

    #[test]
    fn mistakes_are_told() {
        for (body, detail) in [
            (r#"{"page":{"limit":0}}"#, "page.limit is '0' but must be from 1 to 10000"),
            (r#"{"page":{"limit":10001}}"#, "must be from 1 to 10000"),
            (r#"{"page":{"from":9999,"limit":1000}}"#, "together are 10999"),
            (r#"{"page":{"after":"a","before":"b"}}"#, "Both searchAfter and searchBefore"),
            (r#"{"page":{"after":"a","from":1}}"#, "Only one of"),
            (r#"{"page":{"after":"nonsense"}}"#, "The cursor 'nonsense' is none"),
            (r#"{"sort":[{"field":"colour"}]}"#, "Unknown sortBy: colour."),
            (r#"{"sort":[{"order":"ASC"}]}"#, "Sort field must not be null."),
            (r#"{"sort":[{"field":"state","order":"UP"}]}"#, "Unexpected value 'UP' for enum field 'order'"),
            (r#"{"sorting":[]}"#, "[sorting] cannot be parsed"),
        ] {
            let problem = search(&PROCESS_INSTANCES, body.as_bytes()).map(drop).expect_err(body);
            assert!(problem.detail.contains(detail), "{body}: {problem:?}");
        }
    }
}
