//! What a server is started with, besides where it is.

use std::fmt::Write;

use crate::flavour::Flavour;

/// The user whom our own connections are, where there is a password.
pub(crate) const OURSELVES: [&str; 2] = ["testbed", "testbed"];

/// What is said of one server.
#[derive(Clone, Debug)]
pub struct Settings {
    pub(crate) flavour: Flavour,
    options: Vec<(String, String)>,
    password: Option<String>,
    pub(crate) is_tls: bool,
}

impl Settings {
    /// Nothing is kept on disk, everybody on this machine may ask.
    pub fn new(flavour: Flavour) -> Settings {
        Settings { flavour, options: Vec::new(), password: None, is_tls: false }
    }

    /// Sets an option of the server's configuration, such as `maxmemory`; a later one of the same name wins.
    pub fn option(mut self, name: &str, value: &str) -> Settings {
        self.options.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Asks of everybody the password of the default user.
    pub fn password(mut self, password: &str) -> Settings {
        self.password = Some(password.to_owned());
        self
    }

    /// Also listens to TLS, on a port of its own, with certificates made for this server.
    pub fn tls(mut self) -> Settings {
        self.is_tls = true;
        self
    }

    /// Whether our own connections have to say who they are.
    pub(crate) fn has_password(&self) -> bool {
        self.password.is_some()
    }

    /// The text of the configuration.
    pub(crate) fn text(&self) -> String {
        let mut text = String::new();
        for (name, value) in self.lines() {
            let quoted = value.replace('\\', "\\\\").replace('"', "\\\"");
            let _ = writeln!(text, "{name} \"{quoted}\"");
        }
        if self.has_password() {
            let [name, password] = OURSELVES;
            let _ = writeln!(text, "user {name} on >{password} ~* &* +@all");
        }
        text
    }

    fn lines(&self) -> Vec<(&str, &str)> {
        let mut lines = vec![("save", ""), ("appendonly", "no"), ("repl-diskless-sync-delay", "0")];
        if !self.flavour.is_older_than_seven() {
            lines.push(("enable-debug-command", "local"));
        }
        if let Some(password) = &self.password {
            lines.extend([("requirepass", password.as_str()), ("masterauth", password.as_str())]);
        }
        lines.extend(self.options.iter().map(|(name, value)| (name.as_str(), value.as_str())));
        lines
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_one_word_whatever_is_in_it() {
        let settings = Settings::new(Flavour::Redis6).option("requirepass", "a \"b\" \\c");
        assert!(settings.text().ends_with("requirepass \"a \\\"b\\\" \\\\c\"\n"), "{}", settings.text());
    }

    #[test]
    fn where_there_is_a_password_we_are_a_user() {
        let open = Settings::new(Flavour::Redis7);
        assert!(!open.text().contains("user "));
        assert!(open.password("secret").text().contains("user testbed on "));
    }
}
