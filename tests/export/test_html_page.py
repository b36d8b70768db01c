import json
import re
import shutil
import subprocess

import pytest

from solver import Placement, Workload, simulate
from solver.export import save
from solver.export.html_page import page, page_data
from solver.export.palette import fill
from solver.ops import Op, OpKind
from solver.schedule import DeviceOrder
from tests.export import schedules

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
FLAGS = [
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
    *("--hide-scrollbars", "--window-size=1000,700", "--virtual-time-budget=3000"),
]


def embedded(text):
    return json.loads(re.search(r'<script type="application/json" id="data">(.*?)</script>', text, re.DOTALL)[1])


def test_the_page_carries_every_op_and_nothing_from_the_network():
    schedule = schedules.fused()
    text = page({schedule.problem.name: schedule, "</script>": schedules.wave()})
    first, second = embedded(text)["schedules"]
    assert second["title"] == "</script>"
    assert "two &lt;devices&gt; &amp; 1F1B" in text
    unit = schedule.problem.time_unit
    found = {
        (f"{s}{k}{m}", d, start * unit, end * unit)
        for d, row in enumerate(first["devices"])
        for k, s, m, start, end in zip(row["kind"], row["stage"], row["micro"], row["start"], row["end"], strict=True)
    }
    assert found == {(str(e.op), e.device, e.start, e.end) for e in schedule.entries()}
    assert not re.search(r"(src|href)\s*=|https?://|@import|fetch\(|XMLHttpRequest", text)


def test_memory_and_caps_are_in_ticks_of_the_problem():
    data = page_data({"": schedules.fused()})["schedules"][0]
    assert [max(row["levels"]) for row in data["devices"]] == [2, 1]
    assert [row["cap"] for row in data["devices"]] == [2, 2]


def test_a_large_schedule_is_a_small_file(tmp_path):
    # 32 devices x 96 micro-batches, 1F1B: 6,144 ops; under 10 MB is asked, a megabyte is plenty.
    problem = Workload.uniform(32, 96).problem(Placement.linear(32))
    rows = []
    for d in range(32):
        warm = 31 - d
        pairs = [
            Op(d, kind, m - (0 if kind == OpKind.F else warm)) for m in range(96 + warm) for kind in OpKind if kind < 2
        ]
        rows.append([op for op in pairs if 0 <= op.microbatch < 96])
    save(simulate(problem, DeviceOrder.of(rows)), tmp_path / "plan.html")
    assert (tmp_path / "plan.html").stat().st_size < 1_000_000


PROBE = """<script>
addEventListener("load", () => {
  const canvas = document.querySelector("canvas"), box = canvas.getBoundingClientRect();
  const at = (type, x, y, more) => canvas.dispatchEvent(new (type === "wheel" ? WheelEvent : PointerEvent)(
    type, { clientX: box.left + x, clientY: box.top + y, bubbles: true, cancelable: true, ...more }));
  const range = () => document.getElementById("range").textContent, seen = [];
  const steps = [
    () => at("pointermove", 60, 10),
    () => seen.push(document.getElementById("tip").textContent),
    () => at("wheel", 46, 10, { deltaY: -345 }),
    () => seen.push(range()),
    () => { at("pointerdown", 500, 10); at("pointermove", 300, 10); at("pointerup", 300, 10); },
    () => seen.push(range()),
    () => canvas.dispatchEvent(new MouseEvent("dblclick")),
    () => seen.push(range()),
  ];
  steps.forEach((step, i) => setTimeout(step, 60 * i));
  setTimeout(() => {
    const probe = document.createElement("pre");
    probe.id = "probe"; probe.textContent = JSON.stringify(seen);
    document.body.append(probe);
  }, 60 * steps.length);
});
</script></body>"""


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    if CHROMIUM is None:
        pytest.skip("no Chromium on this machine: the page is not tried in a browser")

    def run(*arguments):
        profile = tmp_path_factory.mktemp("profile")
        command = [CHROMIUM, *FLAGS, f"--user-data-dir={profile}", *map(str, arguments)]
        return subprocess.run(command, capture_output=True, text=True, timeout=120, check=True).stdout

    return run


def test_hover_zoom_and_pan_work_in_a_real_browser(browser, tmp_path):
    text = page({"one": schedules.fused(), "two": schedules.thirds()})
    path = tmp_path / "plan.html"
    path.write_text(text.replace("</body>", PROBE))
    tip, zoomed, panned, fitted = json.loads(re.search(r'<pre id="probe">(.*?)</pre>', browser("--dump-dom", path))[1])
    # F0 on device 0 runs first: 1F1B with latency 1/2 ends at 0F2 0B1 .. 0B2; one activation held of a cap of 2.
    assert tip == "0F0   F forward\nstage 0, micro-batch 0, device 0\ntime 0 to 1 (1)\nmemory 1 of 2"
    whole = [float(v) for v in fitted.split(" to ")]
    near = [float(v) for v in zoomed.split(" to ")]
    moved = [float(v) for v in panned.split(" to ")]
    # deltaY -345 scales by exp(-0.69) = 0.5016 around the left edge; dragging 200 px left moves on, at the same width.
    assert near == pytest.approx([0, 0.5016 * whole[1]], rel=1e-3)
    assert moved[0] > 0
    assert moved[1] - moved[0] == pytest.approx(near[1], rel=1e-3)


def test_the_screenshot_shows_every_kind_in_its_colour(browser, tmp_path):
    from PIL import Image

    save({"split": schedules.split(), "fused": schedules.fused()}, tmp_path / "plan.html")
    browser(f"--screenshot={tmp_path / 'page.png'}", tmp_path / "plan.html")
    picture = Image.open(tmp_path / "page.png").convert("RGB")
    seen = {f"#{r:02x}{g:02x}{b:02x}": n for n, (r, g, b) in picture.getcolors(maxcolors=1_000_000)}
    for kind in OpKind:
        assert seen.get(fill(kind), 0) > 500, kind
