"""Errors of EKS, with the members that its service model gives them."""

from typing import Any

from local.aws.extension.hooks import Refusal


def not_found(message: str, **fields: Any) -> Refusal:
    """ResourceNotFoundException."""
    return Refusal("ResourceNotFoundException", message, **fields)


def in_use(message: str, **fields: Any) -> Refusal:
    """ResourceInUseException."""
    return Refusal("ResourceInUseException", message, **fields)


def bad_parameter(message: str, **fields: Any) -> Refusal:
    """InvalidParameterException."""
    return Refusal("InvalidParameterException", message, **fields)


def bad_request(message: str, **fields: Any) -> Refusal:
    """InvalidRequestException."""
    return Refusal("InvalidRequestException", message, **fields)
