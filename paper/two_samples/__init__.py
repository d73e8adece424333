"""Tests that compare a reference with a later sample of features and labels, P(X, y): what the paper argues against.

`DensityTest`, `RankTest`, `MarginTest` and `ErrorTest`: `fit` takes the reference, `test` compares a later sample with
it. Some of the rows are used to fit a density or a rule, and the rest are compared by it; then the roles are exchanged.
Under the null hypothesis the compared rows are exchangeable whatever was fitted to the others. So each of the two
p-values is valid for every distribution and dimension; the smaller one is doubled (Bonferroni).
"""

from paper.two_samples.density import DensityTest, RankTest
from paper.two_samples.margin import ErrorTest, MarginTest
from paper.two_samples.two_sample import TwoSampleTest

__all__ = ["DensityTest", "ErrorTest", "MarginTest", "RankTest", "TwoSampleTest"]
