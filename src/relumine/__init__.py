"""Recover the weights of an unknown one-hidden-layer network from samples of its inputs and outputs."""

from relumine import activations, metrics, planted
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

__version__ = "0.1.0"

__all__ = [
    "Certificate",
    "Decoding",
    "DecodingFailed",
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
    "decode",
    "metrics",
    "planted",
    "recover",
]
