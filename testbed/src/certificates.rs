//! Certificates for one test: an authority, a server and a client, made by the program `openssl`.

use std::path::PathBuf;
use std::process::Command;

use crate::flavour::system;
use harness::Folder;

/// Files in PEM, in a folder of their own.
#[derive(Debug)]
pub struct Certificates {
    folder: Folder,
}

impl Certificates {
    /// Makes an authority, and what it says of `localhost` and 127.0.0.1.
    pub fn new() -> Certificates {
        let certificates = Certificates { folder: Folder::new("certificates") };
        certificates.make("authority", &["-addext", "keyUsage=critical,keyCertSign"]);
        let (certificate, key) = (certificates.file("authority.crt"), certificates.file("authority.key"));
        for (name, usage) in
            [("server", "extendedKeyUsage=serverAuth"), ("client", "extendedKeyUsage=clientAuth")]
        {
            let signed = ["-CA", &text(&certificate), "-CAkey", &text(&key)];
            let says = [
                "-addext",
                "subjectAltName=DNS:localhost,IP:127.0.0.1",
                "-addext",
                "basicConstraints=critical,CA:FALSE",
                "-addext",
                usage,
            ];
            certificates.make(name, &[&signed[..], &says[..]].concat());
        }
        certificates
    }

    /// The certificate that clients are to trust.
    pub fn authority(&self) -> PathBuf {
        self.file("authority.crt")
    }

    /// The server's certificate and its key.
    pub fn server(&self) -> (PathBuf, PathBuf) {
        (self.file("server.crt"), self.file("server.key"))
    }

    /// A client's certificate and its key.
    pub fn client(&self) -> (PathBuf, PathBuf) {
        (self.file("client.crt"), self.file("client.key"))
    }

    fn file(&self, name: &str) -> PathBuf {
        self.folder.file(name)
    }

    fn make(&self, name: &str, arguments: &[&str]) {
        let openssl = system("openssl").unwrap_or_else(|missing| panic!("{missing}"));
        let mut command = Command::new(openssl);
        command.args(["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"]);
        command.args(["-days", "2", "-subj", &format!("/CN=tidegate test {name}")]);
        command.arg("-out").arg(self.file(&format!("{name}.crt")));
        command.arg("-keyout").arg(self.file(&format!("{name}.key"))).args(arguments);
        let output = command.output().unwrap_or_else(|error| panic!("openssl: {error}"));
        assert!(output.status.success(), "openssl: {}", String::from_utf8_lossy(&output.stderr));
    }
}

impl Default for Certificates {
    fn default() -> Certificates {
        Certificates::new()
    }
}

fn text(path: &std::path::Path) -> String {
    path.to_string_lossy().into_owned()
}
