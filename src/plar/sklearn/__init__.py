"""scikit-learn: selectors that keep what the columns say about y, or what says more than chance."""

from plar.sklearn.reduct_selector import ReductSelector
from plar.sklearn.relevant_selector import RelevantSelector

__all__ = ["ReductSelector", "RelevantSelector"]
