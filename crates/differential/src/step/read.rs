//! Reads steps.

use super::{Choice, CreateOptions, Modification, Step, StepError, UserTaskVerb};

/// The timeout of activations that name none.
const TIMEOUT_MILLISECONDS: i64 = 3_600_000;

/// Reads one step.
///
/// # Errors
/// When it is no step.
pub fn read(line: &str) -> Result<Step, StepError> {
    let error = |problem: String| StepError { step: line.to_owned(), problem };
    let mut words = Words { words: split(line).map_err(error)?, next: 0 };
    let step = step(&mut words).map_err(error)?;
    match words.take() {
        None => Ok(step),
        Some(word) => Err(error(format!("'{word}' is too much"))),
    }
}

struct Words {
    words: Vec<String>,
    next: usize,
}

impl Words {
    fn take(&mut self) -> Option<String> {
        let word = self.words.get(self.next).cloned();
        self.next += usize::from(word.is_some());
        word
    }

    fn want(&mut self, what: &str) -> Result<String, String> {
        self.take().ok_or_else(|| format!("{what} is missing"))
    }

    fn want_number(&mut self, what: &str) -> Result<i32, String> {
        let word = self.want(what)?;
        word.parse().map_err(|_| format!("'{word}' is no number"))
    }

    /// The next word, if it is JSON.
    fn variables(&mut self) -> Option<String> {
        if self.words.get(self.next).is_some_and(|word| word.starts_with('{')) { self.take() } else { None }
    }

    /// Whether the next word is this one, which is then taken.
    fn keyword(&mut self, keyword: &str) -> bool {
        let is = self.words.get(self.next).is_some_and(|word| word == keyword);
        self.next += usize::from(is);
        is
    }

    fn option(&mut self, keyword: &str) -> Result<Option<String>, String> {
        if self.keyword(keyword) { self.want(keyword).map(Some) } else { Ok(None) }
    }

    fn list(&mut self, keyword: &str) -> Result<Vec<String>, String> {
        Ok(self.option(keyword)?.map(|list| list.split(',').map(str::to_owned).collect()).unwrap_or_default())
    }

    fn duration_option(&mut self, keyword: &str) -> Result<Option<i64>, String> {
        self.option(keyword)?.map(|text| duration(&text)).transpose()
    }
}

fn step(words: &mut Words) -> Result<Step, String> {
    let verb = words.want("the step")?;
    Ok(match verb.as_str() {
        "deploy" => Step::Deploy { files: std::iter::from_fn(|| words.take()).collect() },
        "create" | "create-with-result" => create(words, verb == "create-with-result")?,
        "activate" => Step::Activate {
            job_type: words.want("the job type")?,
            count: words.want_number("the number of jobs")?,
            timeout: words.duration_option("timeout")?.unwrap_or(TIMEOUT_MILLISECONDS),
            fetch: words.list("fetch")?,
        },
        "complete" => complete(words)?,
        "fail" => Step::Fail {
            job: words.want("the job")?,
            retries: words.want_number("the number of retries")?,
            variables: words.variables().unwrap_or_default(),
            backoff: words.duration_option("backoff")?.unwrap_or(0),
            message: words.option("message")?.unwrap_or_default(),
        },
        "throw" => Step::Throw {
            job: words.want("the job")?,
            code: words.want("the error code")?,
            variables: words.variables().unwrap_or_default(),
        },
        "retries" => {
            Step::Retries { job: words.want("the job")?, retries: words.want_number("the number of retries")? }
        }
        "timeout" => {
            Step::Timeout { job: words.want("the job")?, timeout: duration(&words.want("the new time-out")?)? }
        }
        "user-task" => {
            let verb = words.want("what is done")?;
            let known = UserTaskVerb::ALL.into_iter().find(|known| known.name() == verb);
            Step::UserTask {
                verb: known.ok_or_else(|| format!("'{verb}' is done with no user task"))?,
                task: words.want("the user task")?,
                attributes: words.variables().unwrap_or_else(|| "{}".to_owned()),
            }
        }
        "choose" | "decide" => chosen(words, verb == "decide")?,
        "publish" => Step::Publish {
            name: words.want("the name")?,
            key: words.want("the correlation key")?,
            time_to_live: duration(&words.want("the time to live")?)?,
            variables: words.variables().unwrap_or_default(),
            id: words.option("id")?.unwrap_or_default(),
        },
        "broadcast" => {
            Step::Broadcast { signal: words.want("the signal")?, variables: words.variables().unwrap_or_default() }
        }
        "evaluate" => {
            Step::Evaluate { decision: words.want("the decision")?, variables: words.variables().unwrap_or_default() }
        }
        "time" => Step::Time { milliseconds: duration(&words.want("the duration")?)? },
        "set" | "set-local" => Step::Set {
            scope: words.want("the element")?,
            variables: words.variables().ok_or("the variables are missing")?,
            local: verb == "set-local",
            later: words.keyword("later"),
        },
        "resolve" => Step::Resolve { element: words.want("the element")? },
        "cancel" => Step::Cancel { instance: words.want("the process instance")? },
        "modify" => modify(words)?,
        "migrate" => migrate(words)?,
        "delete" => Step::Delete { process: words.want("the process")?, version: version(words)? },
        other => return Err(format!("there is no step '{other}'")),
    })
}

fn chosen(words: &mut Words, is_by_worker: bool) -> Result<Step, String> {
    if !is_by_worker {
        return Ok(Step::Choose { ad_hoc: words.want("the ad-hoc sub-process")?, choice: choice(words)? });
    }
    Ok(Step::Decide {
        job: words.want("the job")?,
        variables: words.variables().unwrap_or_default(),
        is_fulfilled: words.keyword("fulfilled"),
        choice: choice(words)?,
    })
}

fn choice(words: &mut Words) -> Result<Choice, String> {
    let mut choice = Choice { cancels: words.keyword("cancelling"), ..Choice::default() };
    while words.keyword("activate") {
        choice.elements.push((words.want("the element")?, words.variables().unwrap_or_default()));
    }
    Ok(choice)
}

fn complete(words: &mut Words) -> Result<Step, String> {
    let job = words.want("the job")?;
    Ok(Step::Complete { job, variables: words.variables().unwrap_or_default(), result: words.option("result")? })
}

fn version(words: &mut Words) -> Result<i32, String> {
    if words.keyword("version") { words.want_number("the version") } else { Ok(-1) }
}

fn create(words: &mut Words, with_result: bool) -> Result<Step, String> {
    let process = words.want("the process")?;
    let variables = words.variables().unwrap_or_default();
    let options = CreateOptions {
        name: words.option("as")?,
        version: version(words)?,
        at: words.list("at")?,
        until: words.list("until")?,
        result: if with_result { Some(words.list("fetch")?) } else { None },
    };
    Ok(Step::Create { process, variables, options })
}

fn modify(words: &mut Words) -> Result<Step, String> {
    let instance = words.want("the process instance")?;
    let mut changes = Vec::new();
    while let Some(verb) = words.take() {
        changes.push(match verb.as_str() {
            "activate" => {
                let element = words.want("the element")?;
                let ancestor = words.option("in")?;
                let mut variables = Vec::new();
                while let Some(document) = words.variables() {
                    variables.push((document, words.option("for")?.unwrap_or_default()));
                }
                Modification::Activate { element, ancestor, variables }
            }
            "terminate" => Modification::Terminate { element: words.want("the element")? },
            other => return Err(format!("an instance cannot be modified by '{other}'")),
        });
    }
    Ok(Step::Modify { instance, changes })
}

fn migrate(words: &mut Words) -> Result<Step, String> {
    let instance = words.want("the process instance")?;
    if !words.keyword("to") {
        return Err("'to' is missing".to_owned());
    }
    let process = words.want("the process")?;
    let version = version(words)?;
    let mut mappings = Vec::new();
    while let Some(word) = words.take() {
        let (source, target) = word.split_once("=>").ok_or_else(|| format!("'{word}' maps nothing"))?;
        mappings.push((source.to_owned(), target.to_owned()));
    }
    Ok(Step::Migrate { instance, process, version, mappings })
}

/// Splits at spaces; JSON and quoted texts are one word each.
fn split(line: &str) -> Result<Vec<String>, String> {
    let mut words = Vec::new();
    let mut rest = line.trim();
    while !rest.is_empty() {
        let end = match rest.as_bytes()[0] {
            b'{' => json_end(rest)?,
            b'"' => json_end(rest)?,
            _ => rest.find(' ').unwrap_or(rest.len()),
        };
        let word = &rest[..end];
        let is_text = word.starts_with('"');
        words.push(if is_text {
            serde_json::from_str(word).map_err(|error| format!("{word} is no text: {error}"))?
        } else {
            word.to_owned()
        });
        rest = rest[end..].trim_start();
    }
    Ok(words)
}

/// Where the JSON value at the beginning ends.
fn json_end(text: &str) -> Result<usize, String> {
    let mut values = serde_json::Deserializer::from_str(text).into_iter::<serde_json::Value>();
    match values.next() {
        Some(Ok(_)) => Ok(values.byte_offset()),
        _ => Err(format!("'{text}' does not begin with JSON")),
    }
}

/// Milliseconds of a duration in days, hours, minutes and seconds: `P1DT2H3M4S`.
///
/// # Errors
/// When it is none.
pub fn duration(text: &str) -> Result<i64, String> {
    let wrong = || format!("'{text}' is no duration such as PT1H, PT10S or P1D");
    let mut total: i64 = 0;
    let mut number: Option<i64> = None;
    let mut in_time = false;
    for character in text.strip_prefix('P').ok_or_else(wrong)?.chars() {
        if let Some(digit) = character.to_digit(10) {
            let value = number.unwrap_or(0).checked_mul(10).and_then(|value| value.checked_add(i64::from(digit)));
            number = Some(value.ok_or_else(wrong)?);
            continue;
        }
        let seconds = match (character, in_time) {
            ('T', false) if number.is_none() => {
                in_time = true;
                continue;
            }
            ('D', false) => 86_400,
            ('H', true) => 3_600,
            ('M', true) => 60,
            ('S', true) => 1,
            _ => return Err(wrong()),
        };
        let part = number.take().and_then(|number| number.checked_mul(seconds * 1_000)).ok_or_else(wrong)?;
        total = total.checked_add(part).ok_or_else(wrong)?;
    }
    if number.is_some() { Err(wrong()) } else { Ok(total) }
}
