"""The Price List service as an application of its own: moto's index of services can't be added to, its dispatcher can."""

from flask import Flask
from moto.core.utils import convert_to_flask_response
from moto.moto_server.werkzeug_app import BackendRequest

from local.aws.extension.price import PricingResponse

PRICING = "pricing"


def create_pricing_application() -> Flask:
    """A Flask application that answers every request as the Price List service."""
    application = Flask(PRICING)
    application.request_class = BackendRequest
    application.add_url_rule("/", endpoint=PRICING, methods=["POST"], view_func=convert_to_flask_response(PricingResponse.dispatch))
    return application
