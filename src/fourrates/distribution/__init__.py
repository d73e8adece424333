"""Tests on the joint distribution of features and label, P(X, y): the methods the paper argues against.

They look at the examples, not at a classifier's predictions. `EDivisive` finds the changes of a whole array.
`DensityTest`, `RankTest`, `MarginTest` and `ErrorTest` compare a reference with a later sample. All of them watch a
stream with `update_many`, a reference window against the latest one.
"""

from fourrates.distribution.density import DensityTest, RankTest
from fourrates.distribution.e_divisive import EDivisive
from fourrates.distribution.margin import ErrorTest, MarginTest
from fourrates.distribution.two_sample import TwoSampleTest
from fourrates.distribution.watch import Alarm, Comparison, WindowWatch

__all__ = [
    "Alarm",
    "Comparison",
    "DensityTest",
    "EDivisive",
    "ErrorTest",
    "MarginTest",
    "RankTest",
    "TwoSampleTest",
    "WindowWatch",
]
