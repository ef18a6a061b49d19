"""The board's page in a real browser, measured from the inside: when each change is painted, tasks, heap."""

import contextlib
import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from tests.fixtures.broker import wait_until

WIDTH, HEIGHT = 1600, 1000

OBSERVER = """
(() => {
  let shown = [];
  let waiting = [];
  // After a frame begins, its message is taken up when it was painted: what changed before is on the screen then.
  const painted = new MessageChannel();
  let frame = [];
  painted.port1.onmessage = () => {
    const at = performance.timeOrigin + performance.now();
    for (const each of frame) shown.push([...each, at]);
    frame = [];
  };
  const nextFrame = () => {
    frame.push(...waiting);
    waiting = [];
    painted.port2.postMessage(0);
  };
  const note = (entry) => {
    if (!waiting.length) requestAnimationFrame(nextFrame);
    waiting.push(entry);
  };
  const noteCard = (card) => {
    const number = /#(\\d+)/.exec(card.querySelector(".headline")?.title ?? "")?.[1];
    if (!number) return;
    const inPlace = card.closest("[data-column]")?.dataset.column === card.dataset.status;
    note([card.dataset.card, Number(number), inPlace]);
  };
  const notePanel = (panel) => {
    note([panel.dataset.question, Number(panel.dataset.fingerprint.slice(1)), true]);
  };
  const noteInside = (element) => {
    if (element.matches("[data-card]")) noteCard(element);
    else if (element.matches("[data-question]")) notePanel(element);
    else for (const each of element.querySelectorAll("[data-card], [data-question]")) noteInside(each);
  };
  const take = (records) => {
    const changed = new Set();
    for (const { type, target, addedNodes } of records) {
      if (type === "attributes") changed.add(target.closest("[data-card]"));
      else for (const node of addedNodes) if (node instanceof Element) {
        const card = node.closest("[data-card]");
        if (card && card !== node) changed.add(card);
        else noteInside(node);
      }
    }
    for (const card of changed) if (card?.isConnected) noteCard(card);
  };
  addEventListener("DOMContentLoaded", () => {
    new MutationObserver(take).observe(document.getElementById("app"), {
      subtree: true, childList: true, attributes: true, attributeFilter: ["title"],
    });
  });
  globalThis.takeShown = () => {
    const taken = shown;
    shown = [];
    return taken;
  };
})();
"""


@dataclass(frozen=True)
class Shown:
    """A card or a question that was painted: the number of the event that it shows, and when."""

    agent: str
    number: int
    is_in_place: bool
    """Whether it stood in its own column or in the strip by then: cards move a moment later than they change."""
    at: float


class MeasuredPage:
    """One open page. What it saw is taken out again and again, so that it does not count as the page's memory."""

    def __init__(self, page: Any) -> None:
        self._page = page
        self._cdp = page.context.new_cdp_session(page)
        self._cdp.send("Performance.enable")
        self._cdp.send("HeapProfiler.enable")
        self.shown: list[Shown] = []
        page.add_init_script(OBSERVER)

    def open(self, link: str, cards: int) -> None:
        self._page.goto(link)
        wait_until(lambda: self.evaluate("document.querySelectorAll('[data-card]').length") >= cards, "all cards", 60)

    def evaluate(self, expression: str) -> Any:
        # Not by playwright: that would need `eval`, which the page forbids.
        answer = self._cdp.send("Runtime.evaluate", {"expression": expression, "returnByValue": True})
        assert "exceptionDetails" not in answer, answer
        return answer["result"].get("value")

    def wait(self, seconds: float) -> None:
        self._page.wait_for_timeout(seconds * 1000)

    def take(self) -> None:
        """Take over what was seen since the last time."""
        taken = self.evaluate("takeShown()")
        self.shown += [Shown(agent, number, is_in_place, at / 1000) for agent, number, is_in_place, at in taken]

    def clock_offset_s(self) -> float:
        """How far the clock of what was seen is from the system's."""
        return float(self.evaluate("performance.timeOrigin + performance.now() - Date.now()")) / 1000

    def heap_mb(self) -> float:
        """What is in use after a garbage collection."""
        for _ in range(2):
            self._cdp.send("HeapProfiler.collectGarbage")
        return float(self._cdp.send("Runtime.getHeapUsage")["usedSize"]) / 1e6

    @contextlib.contextmanager
    def traced(self) -> Iterator[list[tuple[float, float]]]:
        """The tasks of the page's main thread in this block: how long each took, and how long it had a processor (ms).

        They are there after the block. On a busy machine most of a long task is waiting.
        """
        browser, tasks = self._page.context.browser, list[tuple[float, float]]()
        browser.start_tracing(page=self._page, categories=["disabled-by-default-devtools.timeline"])
        try:
            yield tasks
        finally:
            events = json.loads(browser.stop_tracing())["traceEvents"]
            names = {each["tid"]: each["args"]["name"] for each in events if each["name"] == "thread_name"}
            runs = [e for e in events if e["name"] == "RunTask" and names.get(e["tid"]) == "CrRendererMain"]
            tasks += [(each["dur"] / 1000, each.get("tdur", each["dur"]) / 1000) for each in runs if "dur" in each]

    def metrics(self) -> dict[str, float]:
        """The browser's own figures: seconds spent in scripts, style and layout since the start, how many nodes."""
        return {each["name"]: float(each["value"]) for each in self._cdp.send("Performance.getMetrics")["metrics"]}


@contextlib.contextmanager
def browser_page() -> Iterator[MeasuredPage]:
    try:
        from tests.fixtures.chromium import chromium  # noqa: PLC0415 - it needs playwright
    except ModuleNotFoundError as missing:
        raise SystemExit(f"{missing.name} is missing: `./muster test --checks` installs the test tools") from None
    with chromium() as browser:
        yield MeasuredPage(browser.new_context(viewport={"width": WIDTH, "height": HEIGHT}).new_page())
