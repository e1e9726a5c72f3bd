"""scikit-learn estimators; importing this module needs scikit-learn (``pip install scikit-learn``)."""

from relumine.estimators.regressor import TwoLayerRegressor

__all__ = ["TwoLayerRegressor"]
