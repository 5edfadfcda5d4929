"""scikit-learn selectors: the features that keep all information about y, or all that beat chance."""

from plar.sklearn.reduct_selector import ReductSelector
from plar.sklearn.relevant_selector import RelevantSelector

__all__ = ["ReductSelector", "RelevantSelector"]
