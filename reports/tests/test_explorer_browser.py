# SPDX-License-Identifier: Apache-2.0
"""The explorer's page in headless Chromium, opened from the disk."""

from __future__ import annotations

import json
import os
import shutil
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from nagi_contracts.paths import SCHEMAS
from nagi_contracts.records import Campaign
from nagi_reports import explorer
from nagi_reports.explorer import tracks
from recorded import record_again
from selenium import webdriver
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.ui import Select

CHROMIUM, DRIVER = shutil.which("chromium"), shutil.which("chromedriver")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        CHROMIUM is None or DRIVER is None,
        reason="no Chromium: `apt-get install chromium chromium-driver` (make test-slow does)",
    ),
]

EXAMPLE = SCHEMAS / "example" / "campaign"
(FIRST,) = (path.name for path in (EXAMPLE / "runs").iterdir())
SECOND = "second0123456789"
NASTY = '<b>bold</b> & "it\'s" <img src=x onerror=alert(1)>'
TIMEOUT_S = 60  # a busy machine draws slowly
SEQUENCE_X, QUEUE_X = "xaxis", "xaxis4"


@pytest.fixture(scope="module")
def page(tmp_path_factory) -> Path:
    """Write the page of a campaign with two copies of the example's run, and return its path.

    The second run is of a scheme whose name is HTML, with queue and captures. Parts are small, so
    that there are many.
    """
    out = Path(shutil.copytree(EXAMPLE, tmp_path_factory.mktemp("explorer") / "out"))
    shutil.copytree(out / "runs" / FIRST, out / "runs" / SECOND)
    for name in ("plan.json", "manifest.json", "verdict.json", "metrics.json"):
        path = out / "runs" / SECOND / name
        told = json.loads(path.read_text())
        for part in [told, *told.get("rows", [])]:
            if "run_id" in part:
                part["run_id"] = SECOND
            if "point" in part:
                part["point"]["scheme"] = NASTY
            if "agi" in part:
                part["agi"] = part["agi"] / 2
        path.write_text(json.dumps(told))
    (out / "runs" / SECOND / "packets.parquet").unlink()
    record_again(out / "runs" / SECOND)
    about = Campaign.read(out / "campaign.json")
    (run,) = about.runs
    point = {**run.point, "scheme": NASTY}
    second = run.model_copy(update={"run_id": SECOND, "point": point})
    about = about.model_copy(update={"runs": [run, second], "title": NASTY})
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tracks, "PART_ROWS", 40)
        patch.setattr(tracks, "BUCKETS", 60)
        return explorer.write_explorer(out, about, out / "explorer")


class Browser:
    """A page in Chromium."""

    def __init__(self, driver: webdriver.Chrome, page: Path) -> None:
        self.driver = driver
        self.page = page

    def resize(self, width: int, height: int) -> None:
        self.driver.execute_cdp_cmd(
            "Emulation.setDeviceMetricsOverride",
            {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False},
        )

    def open(self, fragment: str = "") -> None:
        self.driver.get("about:blank")
        self.driver.get(f"{self.page.as_uri()}{fragment}")
        if fragment:
            self.until(lambda: self.detail in ("packets", "overview", "none"))
        else:
            self.until(lambda: self.js("return document.querySelectorAll('#chart .point').length"))

    def js(self, script: str, *arguments: object) -> Any:
        return self.driver.execute_script(script, *arguments)

    def find(self, name: str) -> Any:
        return self.driver.find_element(By.ID, name)

    def until(self, holds: Callable[[], Any]) -> Any:
        end = time.monotonic() + TIMEOUT_S
        while not (found := holds()):
            assert time.monotonic() < end, f"in vain: {self.find('problem').text}"
            time.sleep(0.1)
        return found

    def select(self, name: str, value: str) -> None:
        Select(self.find(name)).select_by_value(value)

    @property
    def detail(self) -> str | None:
        return self.js("return document.getElementById('panels-of-run').dataset.detail || null")

    @property
    def shown_s(self) -> list[float]:
        return self.js(
            "return ['from', 'to'].map((id) => document.getElementById(id).valueAsNumber)"
        )

    def axis(self, plot: str, name: str) -> list[float]:
        layout = "return document.getElementById(arguments[0])._fullLayout"
        return self.js(f"{layout}[arguments[1]].range", plot, name)

    def shows_time_of_page(self, axes: tuple[str, ...]) -> bool:
        """Return whether these axes of a run's panels show the time that the page states."""
        shown = pytest.approx(self.shown_s, abs=1e-5)
        return all(self.axis("panels-of-run", axis) == shown for axis in axes)

    def locate(self, plot: str, number: str, x: float, y: float) -> tuple[int, int]:
        """Scroll to a point of a subplot, and return its position in the window."""
        at = """
        const plot = document.getElementById(arguments[0]), layout = plot._fullLayout;
        const xs = layout['xaxis' + arguments[1]], ys = layout['yaxis' + arguments[1]];
        return [xs._offset + xs.d2p(arguments[2]), ys._offset + ys.d2p(arguments[3])];
        """
        left, top = self.js(at, plot, number, x, y)
        scroll = """
        const box = document.getElementById(arguments[0]).getBoundingClientRect();
        window.scrollTo(0, window.scrollY + box.top + arguments[1] - window.innerHeight / 2);
        const now = document.getElementById(arguments[0]).getBoundingClientRect();
        return [now.left, now.top];
        """
        box = self.js(scroll, plot, top)
        return round(box[0] + left), round(box[1] + top)

    def drag(self, begin: tuple[int, int], end: tuple[int, int]) -> None:
        actions = ActionChains(self.driver)
        pointer = actions.w3c_actions.pointer_action
        pointer.move_to_location(*begin).pointer_down()
        pointer.move_to_location((begin[0] + end[0]) // 2, (begin[1] + end[1]) // 2)
        pointer.move_to_location(*end).pointer_up()
        actions.perform()

    def hover(self, place: tuple[int, int]) -> None:
        actions = ActionChains(self.driver)
        actions.w3c_actions.pointer_action.move_to_location(place[0] - 3, place[1] - 3)
        actions.w3c_actions.pointer_action.move_to_location(*place)
        actions.perform()

    def console_messages(self) -> list[str]:
        """Return errors and warnings of the console."""
        return [each["message"] for each in self.driver.get_log("browser")]


@pytest.fixture(scope="module")
def chromium(page, tmp_path_factory) -> Iterator[Browser]:
    options = webdriver.ChromeOptions()
    options.binary_location = str(CHROMIUM)
    profile = tmp_path_factory.mktemp("profile")
    for argument in ("--headless=new", "--disable-gpu", "--disable-dev-shm-usage",
                     f"--user-data-dir={profile}", "--window-size=1280,800"):  # fmt: skip
        options.add_argument(argument)
    if os.geteuid() == 0:
        options.add_argument("--no-sandbox")  # Chromium has none for root
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    driver = webdriver.Chrome(options=options, service=Service(str(DRIVER)))
    try:
        yield Browser(driver, page)
    finally:
        driver.quit()


@pytest.fixture
def browser(chromium) -> Iterator[Browser]:
    """Start Chromium at 1280x800; its console has to stay empty."""
    chromium.resize(1280, 800)
    chromium.console_messages()
    yield chromium
    assert chromium.console_messages() == []


def values(browser: Browser) -> list[tuple[float, float]]:
    """Return all marks of the chart."""
    marks = """
    return document.getElementById('chart').data.filter((trace) => trace.mode === 'markers')
      .flatMap((trace) => trace.x.map((x, i) => [x, trace.y[i]]));
    """
    return sorted((x, y) for x, y in browser.js(marks))


def results(page: Path, run: str, column: str) -> list[float]:
    metrics = json.loads((page.parents[1] / "runs" / run / "metrics.json").read_text())
    return [row[column] for row in metrics["rows"]]


def test_axes_are_picked_and_runs_filtered(browser, page):
    browser.open()
    assert browser.driver.title == browser.find("title").text == NASTY
    agi = [results(page, run, "agi") for run in (FIRST, SECOND)]
    assert [y for _, y in values(browser)] == pytest.approx(sorted(agi[0] + agi[1]))
    browser.select("y", "metric.goodput_bps")
    browser.select("x", "metric.rtt_mean_s")
    rtt, goodput = results(page, FIRST, "rtt_mean_s"), results(page, FIRST, "goodput_bps")
    expected = sorted(zip(rtt, (each / 1e6 for each in goodput), strict=True)) * 2
    found = values(browser)
    assert [x for x, _ in found] == pytest.approx(sorted(x for x, _ in expected))
    assert [y for _, y in found] == pytest.approx([y for _, y in sorted(expected)])
    assert "4 of 4 values are shown" in browser.find("shown").text

    browser.find("filter-box").find_element(By.TAG_NAME, "summary").click()
    boxes = browser.driver.find_elements(By.CSS_SELECTOR, "#filters input")
    (box,) = (each for each in boxes if each.get_attribute("data-value") == NASTY)
    box.click()
    assert len(values(browser)) == 2 and "2 of 4 values" in browser.find("shown").text
    assert len(browser.driver.find_elements(By.CSS_SELECTOR, "#runs tbody tr")) == 2
    browser.find("all").click()
    assert len(values(browser)) == 4
    browser.select("panels", "flow")
    browser.select("colour", "")
    titles = browser.driver.find_elements(By.CSS_SELECTOR, "#chart .annotation")
    assert [each.text for each in titles] == ["flow up", "flow down"]
    browser.find("log-y").click()
    assert browser.js("return document.getElementById('chart')._fullLayout.yaxis.type") == "log"


def test_names_are_shown_as_they_are(browser):
    browser.open()
    legend = browser.driver.find_elements(By.CSS_SELECTOR, "#chart .legendtext")
    assert NASTY in [each.text for each in legend]
    cells = browser.driver.find_elements(By.CSS_SELECTOR, "#runs td")
    assert NASTY in [each.text for each in cells]
    assert browser.driver.find_elements(By.CSS_SELECTOR, "img, main b") == []
    browser.open(f"#{SECOND}")
    assert NASTY in browser.find("run-title").text


def test_a_mark_shows_its_run_and_opens_it(browser, page):
    browser.open()
    browser.select("x", "metric.rtt_mean_s")
    browser.select("colour", "point.scheme")
    agi, rtt = results(page, FIRST, "agi")[0], results(page, FIRST, "rtt_mean_s")[0]
    place = browser.locate("chart", "", rtt, agi)
    browser.hover(place)
    said = browser.until(
        lambda: [
            each.text
            for each in browser.driver.find_elements(By.CSS_SELECTOR, "#chart .hovertext")
            if each.text
        ]
    )
    assert f"run {FIRST}" in said[0] and f"AGI: {agi:.5g}"[:9] in said[0]
    actions = ActionChains(browser.driver)
    actions.w3c_actions.pointer_action.move_to_location(*place).pointer_down().pointer_up()
    actions.perform()
    browser.until(lambda: browser.driver.current_url.endswith(f"#{FIRST}"))
    browser.until(lambda: browser.detail)
    assert not browser.find("campaign").is_displayed() and browser.find("run").is_displayed()
    browser.find("back").click()
    browser.until(lambda: browser.find("campaign").is_displayed())


def scripts(browser: Browser) -> list[str]:
    found = "return [...document.scripts].map((each) => each.getAttribute('src')).filter(Boolean)"
    return browser.js(found)


def rows_of(browser: Browser, name: str) -> int:
    drawn = """
    const traces = document.getElementById('panels-of-run').data;
    const trace = traces.find((each) => each.name === arguments[0]);
    return trace ? trace.x.filter((x) => x !== null).length : 0;
    """
    return int(browser.js(drawn, name))


def test_packets_are_loaded_when_one_looks_closer(browser):
    browser.open(f"#{FIRST}")
    assert browser.detail == "overview" and "Overview" in browser.find("detail").text
    assert scripts(browser) == [f"runs/{FIRST}.js"]
    panels = [each.text for each in browser.driver.find_elements(By.CSS_SELECTOR, ".annotation")]
    assert len(panels) == 6 and panels[0] == "Sequence number (MB)"
    whole = browser.shown_s
    before = rows_of(browser, "segment")

    for key in ("zoom-in", "zoom-in"):  # by the keyboard
        browser.find(key).send_keys(Keys.ENTER)
    browser.until(lambda: browser.detail == "packets")
    assert any(name.startswith(f"runs/{FIRST}/0-") for name in scripts(browser))
    begin, end = browser.shown_s
    assert end - begin == pytest.approx((whole[1] - whole[0]) / 9, rel=1e-3)
    assert 0 < rows_of(browser, "segment") != before
    inside = browser.js(
        "return document.getElementById('panels-of-run').data"
        ".find((each) => each.name === 'segment').x.filter((x) => x !== null)"
    )
    assert all(begin <= x <= end for x in inside)

    browser.find("whole").click()
    browser.until(lambda: browser.shown_s == whole and browser.detail == "overview")
    browser.find("to").send_keys(Keys.CONTROL, "a", Keys.NULL, "0.5", Keys.TAB)
    browser.until(lambda: browser.shown_s == [0, 0.5])
    browser.until(lambda: browser.axis("panels-of-run", QUEUE_X) == [0, 0.5])


def test_dragging_zooms_all_panels_and_a_double_click_shows_the_whole(browser):
    browser.open(f"#{FIRST}")
    whole = browser.shown_s
    y = sum(browser.axis("panels-of-run", "yaxis4")) / 2  # the queue
    begin = browser.locate("panels-of-run", "4", 0.4, y)
    end = browser.locate("panels-of-run", "4", 0.6, y)
    browser.drag(begin, end)
    browser.until(lambda: browser.shown_s != whole)
    assert browser.shown_s == pytest.approx([0.4, 0.6], abs=0.01)
    browser.until(lambda: browser.shows_time_of_page((SEQUENCE_X, QUEUE_X, "xaxis6")))
    actions = ActionChains(browser.driver)
    pointer = actions.w3c_actions.pointer_action
    place = browser.locate("panels-of-run", "4", 0.5, y)
    pointer.move_to_location(*place).pointer_down().pointer_up().pointer_down().pointer_up()
    actions.perform()
    browser.until(lambda: browser.shown_s == whole)


def test_two_runs_stand_side_by_side_on_one_time(browser):
    browser.open(f"#{FIRST}")
    browser.select("second", SECOND)
    browser.until(lambda: browser.driver.current_url.endswith(f"#{FIRST},{SECOND}"))
    browser.until(lambda: browser.js("return cells.length === 2 && drawing > 1"))
    layout = "return document.getElementById('panels-of-run')._fullLayout[arguments[0]].domain"
    browser.until(lambda: browser.js(layout, "xaxis")[1] < 0.5)
    assert browser.js(layout, "xaxis2")[0] > 0.5
    assert browser.js(layout, "yaxis") == browser.js(layout, "yaxis2")
    y = sum(browser.axis("panels-of-run", "yaxis")) / 2
    browser.drag(
        browser.locate("panels-of-run", "", 0.5, y), browser.locate("panels-of-run", "", 0.8, y)
    )
    browser.until(lambda: browser.shown_s[0] > 0)
    browser.until(lambda: browser.shows_time_of_page(("xaxis", "xaxis2", "xaxis12")))
    assert browser.axis("panels-of-run", "yaxis2") == browser.axis("panels-of-run", "yaxis")
    # The second run has no record of its queue, and says so in the plot and below it.
    missing = "not recorded (no packets.parquet)"
    texts = [each.text for each in browser.driver.find_elements(By.CSS_SELECTOR, ".annotation")]
    assert sum("not recorded" in each for each in texts) == 1
    assert missing in browser.find("run-facts").text
    browser.select("second-flow", "1")
    browser.until(lambda: browser.js("return cells[1].flow") == 1)


def test_a_run_whose_data_are_gone_says_so(chromium, page, tmp_path):
    moved = tmp_path / "alone.html"
    shutil.copy(page, moved)
    alone = Browser(chromium.driver, moved)
    alone.resize(1280, 800)
    alone.open()
    assert len(values(alone)) == 4  # the campaign is in the page itself
    alone.js("location.hash = arguments[0]", FIRST)
    said = alone.until(lambda: alone.find("problem").text)
    assert f"runs/{FIRST}.js cannot be loaded" in said
    alone.js("location.hash = 'nonsense'")
    alone.until(lambda: "no such run" in alone.find("problem").text)
    assert alone.find("campaign").is_displayed()
    (complaint,) = alone.console_messages()
    assert "ERR_FILE_NOT_FOUND" in complaint


@pytest.mark.parametrize("size", [(1280, 800), (400, 800)])
@pytest.mark.parametrize("fragment", ["", f"#{FIRST}", f"#{FIRST},{SECOND}"])
def test_nothing_is_cut_off_and_every_control_has_a_label(browser, size, fragment):
    browser.resize(*size)
    browser.open(fragment)
    browser.js("for (const each of document.querySelectorAll('details')) each.open = true")
    assert browser.js("return document.documentElement.scrollWidth") <= size[0]
    unlabelled = """
    return [...document.querySelectorAll('select, input')]
      .filter((each) => each.labels.length === 0).map((each) => each.id);
    """
    assert browser.js(unlabelled) == []
    reached = "each.textContent.trim() && each.tabIndex === 0"
    buttons = "[...document.querySelectorAll('button:not(.modebar-btn)')]"
    assert browser.js(f"return {buttons}.every((each) => {reached})")
    beyond = """
    const width = document.documentElement.clientWidth;
    const shown = 'main:not([hidden]) ';
    return [...document.querySelectorAll(`${shown} .annotation, ${shown} .xtick`)]
      .filter((each) => each.getBoundingClientRect().right > width + 1
        || each.getBoundingClientRect().left < -1).map((each) => each.textContent);
    """
    assert browser.js(beyond) == []


def test_nothing_is_asked_of_the_network(browser):
    browser.open(f"#{FIRST}")
    asked = "return performance.getEntriesByType('resource').map((each) => each.name)"
    assert [name for name in browser.js(asked) if not name.startswith(("file:", "data:"))] == []
    titles = browser.driver.find_elements(By.CSS_SELECTOR, ".modebar-btn")
    assert "Share chart..." not in [each.get_attribute("data-title") for each in titles]
