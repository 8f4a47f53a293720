"""Drawings are well-formed, lie on their sheet, and name rules and functions that there are."""

import re
from xml.etree import ElementTree

import pytest

from docs.deployed_work import ALWAYS, IF_ASKED, DeployedWork
from docs.drawings import WIDTH, Note, Send, Sheet, lanes
from docs.protocol_drawings import protocol_drawings
from docs.whole_drawing import whole
from lakebed.model.jobs import TICK_KINDS
from tests.tidy.source import ROOT

SVG = "{http://www.w3.org/2000/svg}"
LETTER = 7
"""Width of a letter of a wide font, on average."""
DRAWINGS = {**protocol_drawings(), "whole.svg": whole()}


def extent(text: ElementTree.Element) -> tuple[float, float]:
    """Return where a line of text begins and ends."""
    x, width = float(text.attrib["x"]), LETTER * len(text.text or "")
    before = {"middle": width / 2, "end": width}.get(text.get("text-anchor", ""), 0)
    return x - before, x - before + width


@pytest.mark.parametrize("name", DRAWINGS)
def test_words_lie_on_the_sheet_and_boxes_hold_theirs(name: str) -> None:
    root = ElementTree.fromstring(DRAWINGS[name])
    height = float(root.attrib["height"])
    boxes = [
        tuple(float(rect.attrib[key]) for key in ("x", "y", "width", "height"))
        for rect in root.iter(f"{SVG}rect")
    ]
    for text in root.iter(f"{SVG}text"):
        start, end = extent(text)
        y = float(text.attrib["y"])
        assert start >= -2, text.text
        assert end <= WIDTH + 2, text.text
        assert y < height, text.text
        for x, top, wide, high in boxes:
            middle = (start + end) / 2
            if x < middle < x + wide and top < y < top + high:
                assert x - 8 <= start, text.text
                assert end <= x + wide + 8, text.text


def test_time_runs_downwards_in_lanes() -> None:
    drawn = lanes("t", ("a", "b"), (Send(0, 1, "first"), Note(1, "second"), Send(1, 0, "third")))
    places = [
        float(text.attrib["y"])
        for text in ElementTree.fromstring(drawn).iter(f"{SVG}text")
        if text.text in {"first", "second", "third"}
    ]
    assert places == sorted(places)
    assert len(places) == 3


def test_words_are_escaped() -> None:
    sheet = Sheet("<a> & b")
    sheet.box(0, 0, 100, "x < y")
    assert "&lt;a&gt; &amp; b" in sheet.svg()
    assert ElementTree.fromstring(sheet.svg()) is not None


@pytest.mark.parametrize("work", [*ALWAYS, *IF_ASKED], ids=lambda work: work.name)
def test_the_deployment_shows_each_work(work: DeployedWork) -> None:
    root = ElementTree.fromstring(DRAWINGS["protocol-deployment.svg"])
    shown = {text.text for text in root.iter(f"{SVG}text")}
    words = {work.name, work.queue, work.trigger, work.schedule, work.does, *work.sends}
    assert words - {""} <= shown


def test_the_deployment_shows_functions_that_there_are() -> None:
    rooms = re.findall(r"([a-z-]+)-handle\b", DRAWINGS["protocol-deployment.svg"])
    assert len(rooms) > 3
    for room in rooms:
        folder = "scheduled_work" if room in TICK_KINDS else room.replace("-", "_")
        assert (ROOT / "lambdas" / folder / "handle.py").is_file(), room
