//! A page as a visitor sees it: what its parts say, whether a button can be pressed, pictures of it.

use std::path::{Path, PathBuf};
use std::time::Duration;
use std::{env, fs};

use fantoccini::elements::Element;
use fantoccini::{Client, Locator};
use testbed::now;
use tokio::time::sleep;

/// How long something may take to be seen.
const SEEN: Duration = Duration::from_secs(120);

/// A visitor's window.
pub(super) struct Page {
    client: Client,
    folder: PathBuf,
    name: &'static str,
}

impl Page {
    pub(super) fn new(client: Client, folder: &Path, name: &'static str) -> Page {
        Page { client, folder: folder.to_owned(), name }
    }

    pub(super) async fn open(&self, url: &str) {
        self.client.goto(url).await.unwrap();
    }

    /// Where the window is.
    pub(super) async fn address(&self) -> String {
        self.client.current_url().await.unwrap().to_string()
    }

    /// What a part of the page says to those who can see it.
    pub(super) async fn text(&self, id: &str) -> String {
        self.part(id).await.text().await.unwrap()
    }

    pub(super) async fn is_shown(&self, id: &str) -> bool {
        self.part(id).await.is_displayed().await.unwrap()
    }

    pub(super) async fn is_active(&self, id: &str) -> bool {
        let part = self.part(id).await;
        part.is_displayed().await.unwrap() && part.is_enabled().await.unwrap()
    }

    pub(super) async fn press(&self, id: &str) {
        self.until(&format!("{id} can be pressed"), async || self.is_active(id).await.then_some(())).await;
        self.part(id).await.click().await.unwrap();
    }

    /// Waits until a part says something with these words in it, and gives all that it says.
    pub(super) async fn until_said(&self, id: &str, words: &str) -> String {
        let look = async || Some(self.text(id).await).filter(|text| text.contains(words));
        self.until(&format!("{id} says {words:?}"), look).await
    }

    /// Looks until something is there.
    pub(super) async fn until<T>(&self, what: &str, look: impl AsyncFn() -> Option<T>) -> T {
        let started = now();
        loop {
            if let Some(found) = look().await {
                return found;
            }
            if started.elapsed() > SEEN {
                self.picture("missed").await;
                panic!(
                    "{}: {what}: not within {SEEN:?}; the page says: {}",
                    self.name,
                    self.text("body").await
                );
            }
            sleep(Duration::from_millis(50)).await;
        }
    }

    /// The points of the lines of a chart.
    pub(super) async fn points(&self, chart: &str) -> usize {
        let script = "return [...document.querySelectorAll(`#${arguments[0]} path.curve`)]
            .map((path) => path.getAttribute('d').match(/[ML]/g)?.length ?? 0)
            .reduce((sum, points) => sum + points, 0)";
        let points = self.client.execute(script, vec![chart.into()]).await.unwrap();
        usize::try_from(points.as_u64().unwrap()).unwrap()
    }

    /// Requests to such addresses are carried out, and their answers lost, until the page is loaded again.
    pub(super) async fn lose_answers(&self, part: &str) {
        let script = "const part = arguments[0], real = window.fetch;
            window.fetch = async (url, options) => {
                const answer = await real(url, options);
                if (url.includes(part)) throw new TypeError('the answer is lost');
                return answer;
            };";
        self.client.execute(script, vec![part.into()]).await.unwrap();
    }

    /// Lets the time to pay run out for the page; what it keeps says until when it was.
    pub(super) async fn let_time_run_out(&self) {
        let script = "const name = Object.keys(sessionStorage).find((name) => name.endsWith(' mine'));
            const mine = JSON.parse(sessionStorage.getItem(name));
            sessionStorage.setItem(name, JSON.stringify({ ...mine, until: 0 }));";
        self.client.execute(script, Vec::new()).await.unwrap();
    }

    /// Saves a picture of the window.
    pub(super) async fn picture(&self, moment: &str) {
        let kept = env::var_os("FLASH_SALE_PICTURES").map(PathBuf::from);
        let folder = kept.unwrap_or_else(|| self.folder.clone());
        fs::create_dir_all(&folder).unwrap();
        let bytes = self.client.screenshot().await.unwrap();
        assert!(bytes.starts_with(b"\x89PNG"), "a picture is a PNG");
        fs::write(folder.join(format!("{}-{moment}.png", self.name)), bytes).unwrap();
    }

    pub(super) async fn close(self) {
        self.client.close().await.unwrap();
    }

    async fn part(&self, id: &str) -> Element {
        let found = match id {
            "body" => self.client.find(Locator::Css("body")).await,
            id => self.client.find(Locator::Id(id)).await,
        };
        found.unwrap_or_else(|error| panic!("{}: {id} is to be on the page: {error}", self.name))
    }
}
