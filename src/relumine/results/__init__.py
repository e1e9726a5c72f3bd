"""What a recovery returns: a network, a status whose text is the advice, a certificate, and where the time went."""

from relumine.results.certificate import Certificate
from relumine.results.errors import (
    InvalidInput,
    MissingPackage,
    ModelFileError,
    NotWritten,
    RelumineError,
    RelumineWarning,
)
from relumine.results.records import (
    Labels,
    Origin,
    Predictions,
    Progress,
    ProgressCallback,
    SearchRecord,
    Stage,
    StandardErrors,
    Units,
    WidthEvidence,
)
from relumine.results.recovery import Recovery, RecoveryFailed
from relumine.results.status import Cause, Diagnosis, Status
from relumine.results.words import counted, described, spelled

__all__ = [
    "Cause",
    "Certificate",
    "Diagnosis",
    "InvalidInput",
    "Labels",
    "MissingPackage",
    "ModelFileError",
    "NotWritten",
    "Origin",
    "Predictions",
    "Progress",
    "ProgressCallback",
    "Recovery",
    "RecoveryFailed",
    "RelumineError",
    "RelumineWarning",
    "SearchRecord",
    "Stage",
    "StandardErrors",
    "Status",
    "Units",
    "WidthEvidence",
    "counted",
    "described",
    "spelled",
]
