"""Power over the dimension: equal false alarms, changes that are what they are said to be, and what is shown."""

import numpy as np
import pytest

from paper import dimensions, figures
from paper.dimensions import DETECTORS, NAMES, Change, Dimensions, case, power_at, shares

pytestmark = pytest.mark.slow


def test_power_is_read_at_the_false_alarms_that_are_allowed():
    false = np.arange(1, 101) / 100
    assert power_at(0.05, false, false) == pytest.approx(0.05)
    assert power_at(0.05, np.full(10, 0.049), false) == pytest.approx(1)
    assert power_at(0.05, np.full(10, 0.06), false) == pytest.approx(0)


def test_between_two_levels_power_is_in_between():
    # At the stricter level 2 of 100 streams without a change alarm, at the other 10: 5 % lies 3/8 of the way.
    false = np.repeat([1e-4, 1e-3, 1.0], [2, 8, 90])
    levels = np.repeat([1e-4, 1e-3, 1.0], [40, 40, 20])
    assert power_at(0.05, levels, false) == pytest.approx(0.4 + 0.4 * 3 / 8)


def test_a_method_that_never_alarms_falsely_has_the_power_of_its_loosest_level():
    assert power_at(0.05, np.array([1e-4, 1.0]), np.ones(50)) == 0.5


def test_the_concept_turns_while_features_and_labels_stay():
    one = case(Change("concept", 90.0, 3), 20_000, (0, 1))
    old, new = slice(20_000), slice(20_000, None)
    # Means of 20,000 normal values have a deviation of 0.007, those of labels of 0.0035.
    assert np.abs(one.features[new].mean(axis=0)).max() < 0.03
    assert abs(one.labels[old].mean() - one.labels[new].mean()) < 0.02
    right = one.labels == one.predictions
    assert right[old].mean() > 0.8
    assert abs(right[new].mean() - 0.5) < 0.03


def test_a_feature_that_moves_leaves_every_rate_where_it_was():
    one = case(Change("features", 0.5, 2), 20_000, (0, 2))
    old, new = slice(20_000), slice(20_000, None)
    assert abs(one.features[new, 1].mean() - 0.5) < 0.03
    for said in (0, 1):
        rates = [np.mean((one.predictions[part] == said)[one.labels[part] == said]) for part in (old, new)]
        assert abs(rates[0] - rates[1]) < 0.03


@pytest.fixture(scope="module")
def results():
    experiment = Dimensions(quick=True)
    return experiment, [experiment.run(run, seed=0) for run in range(2)]


def test_a_run_depends_on_its_seed_alone(results):
    experiment, made = results
    assert experiment.run(1, seed=0) == made[1]
    assert made[0] != made[1]


def test_every_method_has_a_level_for_every_change(results):
    experiment, made = results
    for run in made:
        assert len(run["levels"]) == len(experiment.changes)
        assert all(set(own) == set(NAMES) and all(0 < level <= 1 for level in own.values()) for own in run["levels"])


def test_false_alarms_are_equal_over_all_dimensions(results):
    # Made-up levels, uniform where nothing changes, another scale for each method.
    experiment, _ = results
    random = np.random.default_rng(0)
    made = [
        {"levels": [{name: random.random() / (i + 1) for i, name in enumerate(NAMES)} for _ in experiment.changes]}
        for _ in range(200)
    ]
    found = shares(experiment, made)
    for name in NAMES:
        false = [one.power for one in found if one.method == name and one.change.kind == "none"]
        assert np.mean(false) == pytest.approx(0.05, abs=0.003)


def test_the_table_has_a_row_a_change_and_a_column_a_method(results):
    table = dimensions.table(*results)
    assert table.columns == ["power at 5% false alarms", *NAMES, "difference"]
    assert len(table.rows) == len(results[0].changes)
    assert all(len(row) == len(table.columns) for row in table.rows)
    assert len(table.records) == len(table.rows) * len(NAMES)
    assert "Ours" in table.notes[0]


def test_the_figure_names_every_method_once(results):
    panels, _ = dimensions.panels(*results)
    drawing = figures.power_panels(panels, dimensions.FALSE_ALARMS)
    (legend,) = drawing.legends
    assert [text.get_text() for text in legend.get_texts()] == list(NAMES)
    assert [panel.get_xlabel() for panel in drawing.axes] == ["dimension d", "degrees", "dimension d"]
    assert len(NAMES) <= len(figures.METHODS) == len(figures.MARKS)


def test_the_detectors_go_from_strict_to_loose():
    for made in DETECTORS.values():
        levels = [level for level, _ in made]
        assert levels == sorted(levels)
