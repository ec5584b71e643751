//! redis-server, which only answers `PING` or runs a script of ours.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use super::{Process, Server, free_address};

/// The same promise as `CL.THROTTLE`, as a user of Redis would write it.
const SCRIPT: &str = include_str!("gcra.lua");
const ANSWER_WITHIN: Duration = Duration::from_secs(2);
/// Digits of a script's name.
const NAME_BYTES: usize = 40;

/// Starts it without persistence.
pub(crate) fn start(program: &Path) -> Result<Server, String> {
    let address = free_address()?;
    let mut command = Command::new(program);
    command.args(["--bind", "127.0.0.1", "--port", &address.port().to_string()]);
    command.args(["--save", "", "--appendonly", "no"]);
    let mut process = Process::start(&mut command, Stdio::null())?;
    process.listens(address)?;
    process.served(address, None)
}

/// Hands the script to the server; the name under which it is called.
pub(crate) fn load_script(address: SocketAddr) -> Result<String, String> {
    let request = format!("*3\r\n$6\r\nSCRIPT\r\n$4\r\nLOAD\r\n${}\r\n{SCRIPT}\r\n", SCRIPT.len());
    let answer =
        ask(address, request.as_bytes()).map_err(|error| format!("the script is not loaded: {error}"))?;
    name(&answer).map(str::to_owned).ok_or_else(|| format!("the script is not loaded: {answer}"))
}

fn ask(address: SocketAddr, request: &[u8]) -> std::io::Result<String> {
    let mut stream = TcpStream::connect_timeout(&address, ANSWER_WITHIN)?;
    stream.set_read_timeout(Some(ANSWER_WITHIN))?;
    stream.write_all(request)?;
    let mut answer = [0; 512];
    let count = stream.read(&mut answer)?;
    Ok(String::from_utf8_lossy(&answer[..count]).into_owned())
}

/// What a bulk string holds, if it can be a script's name.
fn name(answer: &str) -> Option<&str> {
    let (_, name) = answer.trim_end().split_once("\r\n").filter(|(length, _)| *length == "$40")?;
    (name.len() == NAME_BYTES).then_some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_script_is_called_by_forty_digits() {
        let digits = "0123456789".repeat(4);
        assert_eq!(name(&format!("$40\r\n{digits}\r\n")), Some(digits.as_str()));
        assert_eq!(name("-ERR Error compiling script\r\n"), None);
        assert_eq!(name("$40\r\nshort\r\n"), None);
    }
}
