//! A real Chromium, driven through a real chromedriver.

use fantoccini::ClientBuilder;
use serde_json::{Value, json};
use testbed::Folder;

use super::family::Family;
use super::page::Page;

/// The driver, and a folder for what its browsers keep.
pub(super) struct Chromium {
    driver: Family,
    folder: Folder,
}

/// What a visitor looks with.
#[derive(Clone, Copy)]
pub(super) enum Look {
    Desktop,
    DesktopAtNight,
    Phone,
    PhoneAtNight,
}

impl Chromium {
    /// Starts a driver on a port that it finds itself.
    pub(super) fn start() -> Chromium {
        let folder = Folder::new("chromium");
        let driver = Family::start("chromedriver", &["--port=0".to_owned()], folder.file("driver.log"));
        Chromium { driver, folder }
    }

    /// A visitor who was never here before. The name is that of the visitor's folder and pictures.
    pub(super) async fn visitor(&self, name: &'static str, look: Look) -> Page {
        let port = self.driver.word_after("started successfully on port ");
        let port = port.trim_end_matches('.');
        let capabilities = json!({ "goog:chromeOptions": self.options(name, look) });
        let Value::Object(capabilities) = capabilities else { unreachable!("it is an object") };
        let mut builder = ClientBuilder::new(hyper_util::client::legacy::connect::HttpConnector::new());
        let client = builder.capabilities(capabilities).connect(&format!("http://127.0.0.1:{port}")).await;
        let client = client.unwrap_or_else(|error| panic!("chromium, for {name}: {error}"));
        Page::new(client, self.folder.path(), name)
    }

    fn options(&self, name: &str, look: Look) -> Value {
        let folder = self.folder.file(&format!("visitor {name}"));
        let mut arguments = vec![
            "--headless=new".to_owned(),
            // Root, as in a container, has no sandbox; the pages are ours.
            "--no-sandbox".to_owned(),
            "--disable-dev-shm-usage".to_owned(),
            "--hide-scrollbars".to_owned(),
            "--window-size=1280,800".to_owned(),
            format!("--user-data-dir={}", folder.display()),
        ];
        if matches!(look, Look::DesktopAtNight | Look::PhoneAtNight) {
            arguments.push("--force-dark-mode".to_owned());
        }
        let mut options = json!({ "args": arguments });
        let (width, height) = match look {
            Look::Desktop | Look::DesktopAtNight => (1280, 800),
            Look::Phone | Look::PhoneAtNight => (390, 844),
        };
        options["mobileEmulation"] = json!({ "deviceMetrics": { "width": width, "height": height, "pixelRatio": 1.0, "touch": width < 500, "mobile": width < 500 } });
        options
    }
}
