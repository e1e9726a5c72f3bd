"""Recover the weights of an unknown one-hidden-layer network from samples of its inputs and outputs."""

from typing import Any

from relumine import activations, metrics, planted
from relumine.extract import BlackBoxFailed, Extraction, extract
from relumine.methods.oymak import Decoding, DecodingFailed, decode
from relumine.methods.recover import recover
from relumine.network import Network
from relumine.results import (
    Certificate,
    InvalidInput,
    ModelFileError,
    Recovery,
    RecoveryFailed,
    RelumineError,
    RelumineWarning,
    Status,
)
from relumine.theory.advice import Advice, advise

__version__ = "0.1.0"

__all__ = [
    "Advice",
    "BlackBoxFailed",
    "Certificate",
    "Decoding",
    "DecodingFailed",
    "Extraction",
    "InvalidInput",
    "ModelFileError",
    "Network",
    "Recovery",
    "RecoveryFailed",
    "RelumineError",
    "RelumineWarning",
    "Status",
    "__version__",
    "activations",
    "advise",
    "decode",
    "estimators",
    "extract",
    "metrics",
    "planted",
    "recover",
]


def __getattr__(name: str) -> Any:
    # scikit-learn is an extra, and slow to import: only for those who ask
    if name == "estimators":
        import importlib

        return importlib.import_module("relumine.estimators")
    raise AttributeError(f"module 'relumine' has no attribute {name!r}")
