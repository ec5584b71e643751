//! `PUT /v1/rules`: writes the rules file and puts its rules in force.
//!
//! The reply has the differences to the rules before, in the words of the log, and the warnings. The new rules
//! decide from the next request on, on all workers.

use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use hyper::StatusCode;
use hyper::header::HeaderMap;
use serde_json::json;
use tidegate_support::MAX_COMPLAINTS;
use tokio::task::spawn_blocking;

use super::operator::{Conditions, tag_reply, unmet};
use super::overrides::not_kept;
use super::problem::Problem;
use super::reply::Reply;
use crate::engine::Engine;
use crate::overrides::AuditRecord;
use crate::precondition::Tag;
use crate::rules::{Changes, NotWritten};
use crate::settings::{ComplaintRecord, SettingsError};

/// The maximum number of errors of one response.
const MAX_ERRORS: usize = MAX_COMPLAINTS;

/// Writes the file and puts its rules in force, on a thread that may block on disk I/O.
///
/// Replies 422 with every error if the text is invalid, 412 or 428 if a precondition is not met, and 409 if the
/// file on disk was edited. In each case neither the file nor the rules change.
pub(super) async fn put(
    body: Bytes,
    conditions: Conditions,
    headers: &mut HeaderMap,
    engine: Arc<Engine>,
) -> Result<Reply, Problem> {
    let tag = Tag::of(&body);
    let written = spawn_blocking(move || {
        let text = std::str::from_utf8(&body).map_err(|error| no_text(&error))?;
        let log = |file: &Path| {
            let (file, date) = (file.display().to_string(), engine.gate().date());
            engine.audit().append(&AuditRecord::put_rules(file, tag.to_string(), &conditions.author, date))
        };
        let written = engine.rules().write(text, engine.settings(), &conditions.named, log);
        written.map_err(|error| not_written(error, &engine))
    });
    let failed = |_| Problem::new(StatusCode::INTERNAL_SERVER_ERROR, "the file was not written; try again");
    let Changes { differences, warnings } = written.await.map_err(failed)??;
    tag_reply(headers, Some(tag));
    Ok(Reply::of(&json!({"differences": differences, "warnings": warnings})))
}

/// Returns the problem of a body that is not UTF-8.
fn no_text(error: &std::str::Utf8Error) -> Problem {
    let byte = error.valid_up_to() + 1;
    Problem::bad_request(format!("body: it is no UTF-8 text from byte {byte} on; send the file as it is"))
}

/// Returns the problem of a file that was not written.
fn not_written(error: NotWritten, engine: &Engine) -> Problem {
    match error {
        NotWritten::Rejected(error) => rejected(&error),
        NotWritten::NoFile => Problem::new(
            StatusCode::CONFLICT,
            "this server has no file to write rules to; start it with --config FILE",
        ),
        NotWritten::Unmet(why) => unmet(why, "the text of the rules in force", "/v1/rules"),
        NotWritten::Changed => {
            let file = engine.rules().file().unwrap_or_default();
            let detail = format!(
                "{file}: differs from the rules in force: it was edited and not read yet, or \
                 is invalid (see status of /v1/rules); check it and try again, or send If-Match: * to overwrite it"
            );
            Problem::new(StatusCode::CONFLICT, detail)
        }
        NotWritten::NotLogged(why) => not_kept(&why, engine),
        NotWritten::Io(error) => {
            let file = engine.rules().file().unwrap_or_default();
            let detail = format!(
                "{file}: cannot be written: {error}; let the server's user write it and its folder, or change it by hand"
            );
            Problem::new(StatusCode::INTERNAL_SERVER_ERROR, detail)
        }
    }
}

/// Returns the problem of an invalid text, with the place of each error.
fn rejected(error: &SettingsError) -> Problem {
    let (file, complaints) = error.complaints();
    let text = file.map_or("", |file| &file.text);
    let all = complaints.iter().zip(error.each()).take(MAX_ERRORS);
    let errors: Vec<_> =
        all.map(|(complaint, shown)| ComplaintRecord::new(complaint, text, Some(shown))).collect();
    let count = complaints.len();
    let what = match count {
        1 => "1 error".to_owned(),
        // The last one contains only the number of further errors.
        _ if count > MAX_ERRORS => format!("more than {MAX_ERRORS} errors"),
        _ => format!("{count} errors"),
    };
    let detail = format!("{what} in these rules; the previous rules stay in force");
    Problem::new(StatusCode::UNPROCESSABLE_ENTITY, detail).and("errors", &errors)
}
