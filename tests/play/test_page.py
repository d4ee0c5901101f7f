"""The pages in a real browser: Chromium, which reaches nothing but the pages' own servers."""

from __future__ import annotations

import shutil
import subprocess
import sys
import time
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import httpx
import pytest
from typer.testing import CliRunner

from spark_cep.cli.main import app
from tests.play.trials import PAIR

if TYPE_CHECKING:
    from selenium.webdriver.chrome.webdriver import WebDriver
    from selenium.webdriver.remote.webelement import WebElement

CHROMIUM, DRIVER = shutil.which("chromium"), shutil.which("chromedriver")
pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(
        CHROMIUM is None or DRIVER is None,
        reason="there is no Chromium here: .ci/browser/install installs it, where apt-get may",
    ),
]
_Found = TypeVar("_Found")
#: On a busy machine; what is waited for mostly takes a second.
_SECONDS = 60.0
#: The first run may compile what `make setup` has not.
_SECONDS_TO_BEGIN = 300.0

#: The width of the charts; text, left and right edge of each title.
_TITLES = """
const chart = getElement(document.querySelector(".watch-trend-chart").id.slice(1)).chart;
const titles = chart.getZr().storage.getDisplayList(true)
  .filter((each) => each.style.text !== undefined && each.z === 6)
  .map((each) => {
    const box = each.getBoundingRect().clone();
    if (each.transform) box.applyTransform(each.transform);
    return [each.style.text, box.x, box.x + box.width];
  });
return titles.length ? [chart.getWidth(), titles] : null;
"""


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    """The address of a page that is served."""
    yield from served("spark_cep.cli.main", "play", "--no-browser", "--port", "0")


@pytest.fixture(scope="module")
def watched() -> Iterator[str]:
    """The address of a page on which a job is watched."""
    yield from served("tests.watch.served_page")


def served(*module: str) -> Iterator[str]:
    """The address that a module's command prints, while it runs."""
    command = [sys.executable, "-m", *module]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        yield process.stdout.readline().split()[0]
        process.terminate()


@pytest.fixture(scope="module")
def downloads(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder to which the browser downloads."""
    return tmp_path_factory.mktemp("downloads")


@pytest.fixture(scope="module")
def browser(downloads: Path) -> Iterator[WebDriver]:
    """Chromium, which finds no other host."""
    from selenium import webdriver
    from selenium.webdriver.chrome.service import Service

    options = webdriver.ChromeOptions()
    options.binary_location = str(CHROMIUM)
    for argument in (
        "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
        "--window-size=1440,1000", "--host-resolver-rules=MAP * ~NOTFOUND , EXCLUDE 127.0.0.1",
    ):  # fmt: skip
        options.add_argument(argument)
    options.add_experimental_option("prefs", {"download.default_directory": str(downloads)})
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    driver = webdriver.Chrome(options, Service(str(DRIVER)))
    yield driver
    driver.quit()


class Page:
    """The page in the browser."""

    def __init__(self, browser: WebDriver) -> None:
        self.browser = browser

    def all(self, selector: str) -> list[WebElement]:
        """The elements of a CSS selector."""
        return self.browser.find_elements("css selector", selector)

    def one(self, selector: str) -> WebElement:
        """The first element of a selector, once it is there."""
        return until(lambda: next(iter(self.all(selector)), None), selector)

    def text(self, selector: str) -> str:
        """The text of the first element."""
        return self.one(selector).text

    def wait_for(self, selector: str, text: str) -> None:
        """Wait until the first element has a text."""
        until(lambda: text in self.text(selector) or None, f"{text!r} in {selector}")

    def type_behind(self, line: int, keys: str) -> None:
        """Type at the end of a line of the rule."""
        from selenium.webdriver.common.keys import Keys

        self.all(".play-text .cm-line")[line].click()
        self.browser.switch_to.active_element.send_keys(Keys.END, keys)

    def tokens(self) -> dict[str, tuple[str, str, str]]:
        """By number, the partial matches in the drawing: what they are, and where."""
        return {
            str(each.get_dom_attribute("data-number")): (
                str(each.get_dom_attribute("class")),
                str(each.get_dom_attribute("data-x")),
                str(each.get_dom_attribute("data-y")),
            )
            for each in self.all(".play-token")
        }

    def step(self, name: str) -> None:
        """Click at a button of the stepper, and wait for what it shows."""
        before = self.text(".play-count")
        self.one(f".play-{name}").click()
        until(lambda: self.text(".play-count") != before or None, "another step")


def until(found: Callable[[], _Found | None], what: str, seconds: float = _SECONDS) -> _Found:
    """What is found, once it is there."""
    from selenium.common.exceptions import StaleElementReferenceException

    end = time.monotonic() + seconds
    while time.monotonic() < end:
        try:
            result = found()
        except (StaleElementReferenceException, IndexError):
            result = None
        if result is not None:
            return result
        time.sleep(0.05)
    raise AssertionError(f"there is no {what}")


@pytest.fixture
def page(browser: WebDriver, address: str) -> Page:
    """The page as it begins, once it shows results."""
    browser.get(address)
    page = Page(browser)
    until(lambda: page.all(".play-token") or None, "result", _SECONDS_TO_BEGIN)
    return page


def test_a_partial_match_is_followed_to_its_match_and_shared(
    page: Page, downloads: Path, tmp_path: Path
) -> None:
    """A run draws the states; stepping moves partial matches and tells why; the case that is
    shared passes `spark-cep test`."""
    assert len(page.all(".play-automaton g.node")) == 7
    assert page.text(".play-count") == "1 / 13"
    begun = page.tokens()
    assert list(begun) == ["1"]
    page.step("next")
    until(lambda: len(page.tokens()) == 2 or None, "second partial match")
    moved = page.tokens()
    assert moved["1"][1:] != begun["1"][1:]
    assert moved["2"][1:] == begun["1"][1:]
    assert page.text(".play-why").splitlines() == [
        "1 (fail) takes it as fail",
        "2 begins with it as fail",
    ]
    # The event under the cursor.
    until(lambda: page.all(".ag-row[row-index='4'] .ag-cell"), "row 5")[2].click()
    page.wait_for(".play-title", "row 5 · key bob · passed over")
    page.wait_for(".play-why", "action = 'login_fail' is not true: action is 'login_ok'")
    page.step("next")
    page.wait_for(".play-title", "key ann")
    until(lambda: "play-matched" in page.tokens()["1"][0] or None, "match")
    assert "1 match, 4 timeouts" in page.text(".play-counts")
    page.one(".play-share").click()
    packed = until(lambda: next(iter(downloads.glob("*.zip")), None), "download")
    with zipfile.ZipFile(packed) as archive:
        assert archive.namelist() == ["brute-force.yaml", "brute-force.avsc"]
        archive.extractall(tmp_path)
    result = CliRunner().invoke(app, ["test", str(tmp_path)])
    assert result.exit_code == 0, result.output
    assert "1 passed" in result.output


def test_a_mistake_is_underlined_as_it_is_typed(page: Page) -> None:
    """With the message, its place and help; once it is gone the rule runs again."""
    from selenium.webdriver.common.keys import Keys

    page.type_behind(12, "s of what")
    underlined = page.one(".play-error")
    assert underlined.text == "1 minutes of what"
    page.wait_for(".play-problems", "13:9")
    assert "help: a number and a unit" in page.text(".play-problems")
    page.wait_for(".play-status", "1 error")
    page.type_behind(12, Keys.BACKSPACE * len("s of what"))
    until(lambda: not page.all(".play-error") or None, "end of the mistake")
    until(lambda: page.text(".play-status") == "" or None, "result")
    # Columns come from the schema.
    page.type_behind(6, " AND us")
    until(lambda: [e for e in page.all(".cm-tooltip-autocomplete li") if "user" in e.text] or None,
          "completion")  # fmt: skip


def test_a_file_is_opened_and_an_event_is_changed(page: Page, tmp_path: Path) -> None:
    """Recorded events become rows; a cell that a person changes is run at once."""
    from selenium.webdriver.common.action_chains import ActionChains
    from selenium.webdriver.common.keys import Keys

    (tmp_path / "pair.yaml").write_text(PAIR)
    csv = "user,kind,n,ts\nann,a,1,2026-03-01T10:00:00Z\nann,b,2,2026-03-01T10:00:05Z\n"
    (tmp_path / "logins.csv").write_text(csv)
    files = "\n".join(map(str, sorted(tmp_path.iterdir())))
    page.one(".play-hidden input[type=file]").send_keys(files)
    page.wait_for(".play-text .cm-content", "id: pair")
    until(lambda: page.text(".play-counts") == "1 match" or None, "the match")
    cell = until(lambda: page.all(".ag-row[row-index='1'] [col-id='c2']"), "cell")[0]
    assert cell.text == "2"
    ActionChains(page.browser).double_click(cell).perform()
    page.browser.switch_to.active_element.send_keys(Keys.BACKSPACE * 2, "0", Keys.ENTER)
    page.wait_for(".play-counts", "1 open")
    errors = [each for each in page.browser.get_log("browser") if each["level"] == "SEVERE"]
    assert errors == []


def test_a_job_is_watched(browser: WebDriver, watched: str) -> None:
    """Partial matches stand on the drawing and move on it; what comes is appended; a rule is
    paused, and one is added once it can be read; another tab shows the same."""
    from selenium.webdriver.common.keys import Keys

    browser.get(watched)
    page = Page(browser)
    until(lambda: len(page.tokens()) == 2 or None, "two partial matches")
    begun = page.tokens()
    assert page.text(".watch-drawn") == "brute-force"
    page.wait_for(".watch-partials", "ann\nfail\n")
    page.wait_for(".watch-records", "300, the newest 200 are kept")
    assert len(page.all(".watch-records .watch-record")) == 200
    page.wait_for(".watch-rule-rejected", "wrong")
    page.wait_for(".watch-notes", "The checkpoint cannot be read: no file")
    pauses = {each.text.split("\n")[0]: each for each in page.all(".watch-row")}
    pauses["brute-force"].find_element("css selector", "[aria-label=pause]").click()
    page.wait_for(".watch-rule-paused", "brute-force")
    page.wait_for(".watch-results", "match 1 of brute-force")
    until(lambda: page.tokens()["1"][1:] != begun["1"][1:] or None, "a move")
    page.wait_for(".watch-partials", "fail ×2")
    page.one(".watch-open-dialog").click()
    page.wait_for(".watch-editor", "id: brute-force-2")
    page.one(".watch-editor .cm-content").click()
    browser.switch_to.active_element.send_keys(Keys.CONTROL, Keys.HOME, Keys.NULL, "wrong")
    page.one(".watch-add").click()
    page.wait_for(".watch-problems", "wrongid")
    page.one(".watch-editor .cm-content").click()
    browser.switch_to.active_element.send_keys(Keys.CONTROL, Keys.HOME, Keys.NULL, Keys.DELETE * 5)
    page.one(".watch-add").click()
    page.wait_for(".watch-rules", "brute-force-2")
    browser.get(watched)
    page.wait_for(".watch-results", "match 1 of brute-force")
    page.wait_for(".watch-rules", "brute-force-2")
    page.one("[aria-label=pause]").click()
    page.wait_for(".q-notification", "quiet is not paused: Kafka does not answer. Check that")
    assert "bootstrap:" not in page.text(".q-notification")
    errors = [each for each in browser.get_log("browser") if each["level"] == "SEVERE"]
    assert errors == []


@pytest.mark.parametrize("width", [1440, 1000, 900])
def test_titles_of_figures_are_whole(browser: WebDriver, watched: str, width: int) -> None:
    """None reaches into the next chart, or beyond the edge of the last one."""
    size = browser.get_window_size()
    browser.set_window_size(width, size["height"])
    try:
        browser.get(watched)
        Page(browser).one(".watch-trend canvas")
        chart, titles = until(lambda: browser.execute_script(_TITLES), "titles")
    finally:
        browser.set_window_size(size["width"], size["height"])
    names, begins, ends = zip(*titles, strict=True)
    assert names == ("records/s", "lag, records", "latency, s; dotted: 95 %, grey: batch")
    assert all(end <= most for end, most in zip(ends, [*begins[1:], chart], strict=True))


def test_another_site_reads_nothing(address: str, watched: str) -> None:
    """A name that leads to this machine is not the page's own."""
    for each in (address, watched):
        assert httpx.get(each, timeout=60).status_code == 200
        answer = httpx.get(each, headers={"Host": "rebound.example"}, timeout=60)
        assert answer.status_code == 403
