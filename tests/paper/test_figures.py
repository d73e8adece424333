"""Figures a person can read: axes named, legends there, one look for one detector."""

import pytest

from paper import catalogue, figures
from paper.catalogue import Context, choose
from paper.work import results

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def drawings(tmp_path_factory):
    choice = choose(
        ["synthetic", "figure1", "figure2", "figure3", "figure4", "figure5", "histogram-balance3"], quick=True
    )
    found = results(choice.experiments, runs=2, seed=0, jobs=1, folder=tmp_path_factory.mktemp("results"))
    context = Context(choice.experiments, found, 0, None)
    return {item.name: item.make(context) for item in choice.items}


def test_every_axis_is_named(drawings):
    for name, drawing in drawings.items():
        panels = [panel for panel in drawing.figure.axes if panel.get_label() != "<colorbar>"]
        assert any(panel.get_xlabel() for panel in panels), name
        assert panels[0].get_ylabel(), name


def test_colours_are_explained_by_a_legend_or_a_bar(drawings):
    for name, drawing in drawings.items():
        legends = drawing.figure.legends or [panel.get_legend() for panel in drawing.figure.axes if panel.get_legend()]
        bars = [panel for panel in drawing.figure.axes if panel.get_label() == "<colorbar>"]
        assert len(legends) + len(bars) > 0, name


def test_a_histogram_names_every_detector_and_the_change(drawings):
    (legend,) = drawings["figure5"].figure.legends
    assert [text.get_text() for text in legend.get_texts()] == [
        "LFR (count above bar)",
        "LFR plug-in",
        "NFR",
        "DDM",
        "DDM-OCI",
        "true change",
    ]


def test_the_counts_of_LFR_stand_above_its_bars():
    own = figures.Detections("one", {"LFR": [10, 11, 250], "NFR": [250]}, 1)
    drawing = figures.histogram([own], 400, [200], 100)
    assert [text.get_text() for text in drawing.axes[0].texts] == ["2", "1"]


def test_detectors_differ_in_colour_and_stroke():
    assert len(set(figures.COLOURS.values())) == len(figures.COLOURS)
    assert len({str(stroke) for name, stroke in figures.STROKES.items() if name != "LFR"}) == len(figures.STROKES) - 1


def test_the_same_numbers_give_the_same_picture(drawings):
    figure = drawings["figure5"].figure
    assert figures.saved(figure, "svg") == figures.saved(figure, "svg")
    assert figures.saved(figure, "png").startswith(b"\x89PNG")


def test_the_notes_tell_what_the_figure_shows(drawings):
    assert "LFR reports it at 5,170 (the paper's run: 5,167), NFR at 5,712" in drawings["figure1"].notes[0]
    assert (
        "Of 40 pairs with q other than p, R is ahead within the first 10 observations in 40"
        in drawings["figure3"].notes[0]
    )


def test_the_ten_experiments_have_a_histogram_each():
    drawn = [item for item in catalogue.ITEMS if "when each detector reports" in item.title]
    assert len(drawn) == 10
