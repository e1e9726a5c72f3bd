"""scikit-learn estimators; importing this module needs scikit-learn (``pip install 'relumine[sklearn]'``)."""

from relumine.estimators.regressor import TwoLayerRegressor

__all__ = ["TwoLayerRegressor"]
