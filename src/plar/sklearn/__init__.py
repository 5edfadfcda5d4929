"""scikit-learn estimators: selectors of features, by what they say about y, and a classifier by rules."""

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
from plar.sklearn.rule_classifier import RuleClassifier

__all__ = ["FeatureSelector", "FeatureSelectorCV", "ReductSelector", "RelevantSelector", "RuleClassifier"]
