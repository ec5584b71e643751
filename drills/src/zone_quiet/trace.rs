//! What `strace` wrote.

/// What is written before the decisions, and after them.
pub(super) const MARKS: [&str; 2] = ["quiet-begins", "quiet-ends"];

/// The system calls between the two marks, of any thread.
pub(super) fn between_marks(trace: &str) -> Result<Vec<&str>, String> {
    let lines: Vec<&str> = trace.lines().collect();
    let place = |mark: &str| {
        let mark = format!("\"{mark}\"");
        let found = lines.iter().position(|line| line.contains(&mark));
        found.ok_or_else(|| format!("the trace has no {mark}"))
    };
    let (begin, end) = (place(MARKS[0])?, place(MARKS[1])?);
    let between = lines.get(begin + 1..end).ok_or("the marks are in the wrong order")?;
    Ok(between.iter().copied().filter(|line| is_call(line)).collect())
}

/// Signals and ends of threads are no calls.
fn is_call(line: &str) -> bool {
    let after_number = line.trim_start().trim_start_matches(|character: char| character.is_ascii_digit());
    !after_number.trim_start().starts_with(['-', '+'])
}

#[cfg(test)]
mod tests {
    use super::*;

    const QUIET: &str = "\
7 write(3, \"quiet-begins\", 12) = 12
7 --- SIGALRM {si_signo=SIGALRM} ---
7 write(3, \"quiet-ends\", 10) = 10
7 exit_group(0) = ?
7 +++ exited with 0 +++
";

    #[test]
    fn only_calls_between_the_marks_count() {
        assert_eq!(between_marks(QUIET), Ok(vec![]));
        let call = "8 futex(0x7f00, FUTEX_WAIT, 1, NULL <unfinished ...>";
        let loud = QUIET.replace("7 ---", &format!("{call}\n7 ---"));
        assert_eq!(between_marks(&loud), Ok(vec![call]));
    }

    #[test]
    fn a_trace_without_marks_proves_nothing() {
        assert!(between_marks("7 exit_group(0) = ?\n").is_err());
        let ends_first: String = QUIET.lines().rev().map(|line| format!("{line}\n")).collect();
        assert!(between_marks(&ends_first).is_err());
    }
}
