"""scikit-learn selectors: the features that predict y, all that beat chance, or those that keep all information."""

from __future__ import annotations

from plar.errors import EngineUnavailable

try:
    from sklearn.utils.validation import validate_data  # noqa: F401  (which 1.6 has and 1.5 has not)
except ImportError:
    raise EngineUnavailable("plar.sklearn needs scikit-learn 1.6 or later. Try: pip install 'plar[sklearn]'.") from None

from plar.sklearn.feature_selector import FeatureSelector
from plar.sklearn.feature_selector_cv import FeatureSelectorCV
from plar.sklearn.reduct_selector import ReductSelector
from plar.sklearn.relevant_selector import RelevantSelector

__all__ = ["FeatureSelector", "FeatureSelectorCV", "ReductSelector", "RelevantSelector"]
