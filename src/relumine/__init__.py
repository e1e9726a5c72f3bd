"""Find the weights of an unknown neural network from its answers: from samples, or by asking a black box."""

from typing import Any

from relumine import activations, metrics, planted
from relumine.deep import DeepNetwork
from relumine.extraction import BlackBoxFailed, Extraction, extract
from relumine.network import Network
from relumine.papers.oymak2018.method import decode
from relumine.papers.oymak2018.result import Decoding, DecodingFailed
from relumine.recovery.advice import Advice, advise
from relumine.recovery.door import recover
from relumine.results import (
    Certificate,
    InvalidInput,
    MissingPackage,
    ModelFileError,
    NotWritten,
    Recovery,
    RecoveryFailed,
    RelumineError,
    RelumineWarning,
    Status,
)
from relumine.version import __version__

__all__ = [
    "Advice",
    "BlackBoxFailed",
    "Certificate",
    "Decoding",
    "DecodingFailed",
    "DeepNetwork",
    "Extraction",
    "InvalidInput",
    "MissingPackage",
    "ModelFileError",
    "Network",
    "NotWritten",
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
    "papers",
    "planted",
    "recover",
    "report",
]


def __getattr__(name: str) -> Any:
    # scikit-learn is an extra, and slow to import; papers and pages are for those who ask
    if name in ("estimators", "papers", "report"):
        import importlib

        return importlib.import_module(f"relumine.{name}")
    raise AttributeError(f"module 'relumine' has no attribute {name!r}")


def __dir__() -> list[str]:
    return list(__all__)
