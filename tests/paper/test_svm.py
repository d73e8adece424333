"""The quick support vector machine says what scikit-learn's says."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.svm import SVC

from paper.hyperplane import hyperplane
from paper.sea import sea
from paper.svm import BLOCK, RBF


@pytest.mark.parametrize("stream", [sea, hyperplane])
@pytest.mark.parametrize("dearer", [1.0, 100.0])
def test_it_predicts_what_SVC_predicts(stream, dearer):
    examples = stream(seed=3)
    learn, ask = slice(1000), slice(1000, 1000 + 3 * BLOCK + 17)
    model = RBF(0, dearer).fit(examples.features[learn], examples.labels[learn])
    peer = SVC(class_weight={0: dearer}).fit(examples.features[learn], examples.labels[learn])
    assert np.array_equal(model.predict(examples.features[ask]), peer.predict(examples.features[ask]))
    assert model.decide(examples.features[ask]) == pytest.approx(
        peer.decision_function(examples.features[ask]), abs=1e-9
    )


def test_a_row_alone_is_predicted_as_among_others():
    examples = sea(seed=4)
    model = RBF().fit(examples.features[:300], examples.labels[:300])
    rows = examples.features[300:400]
    assert [int(model.predict(row[None])[0]) for row in rows] == model.predict(rows).tolist()


def test_examples_of_one_class_make_a_model_that_says_it():
    model = RBF().fit(np.zeros((5, 2)), np.ones(5, int))
    assert model.predict(np.zeros((3, 2))).tolist() == [1, 1, 1]


def test_dearer_errors_on_a_class_make_it_said_more_often():
    examples = sea(seed=5)
    plain, dear = (
        model.fit(examples.features[:1000], examples.labels[:1000]).predict(examples.features[1000:5000])
        for model in (RBF(), RBF(0, 100.0))
    )
    assert np.mean(dear == 0) > np.mean(plain == 0)


def test_a_clone_has_the_same_settings():
    assert clone(RBF(1, 100.0, gamma="auto")).get_params() == RBF(1, 100.0, gamma="auto").get_params()
