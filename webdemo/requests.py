"""Requests: the parts that all tabs share, and the limit on their size."""

import math

from fastapi.responses import JSONResponse
from pydantic import BaseModel, ConfigDict, Field
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from geoind import SphericalLaplace, epsilon_for

__all__ = ["MAX_SEED", "Ask", "BodyLimit", "Point", "Privacy", "Promised"]

MAX_SEED = 2**53 - 1
"""Largest whole number that JavaScript counts exactly."""


class BodyLimit:
    """Middleware that answers with status 413 to a body that is too long, before the application reads it.

    Parameters
    ----------
    app : ASGI application
        What answers all other requests.
    most : int
        Bytes of the longest body. It is read into memory before the application is called.
    """

    def __init__(self, app: ASGIApp, most: int) -> None:
        self.app = app
        self.most = most

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass on a request, unless it is too long: by its Content-Length or by the bytes received."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        refuse = JSONResponse(
            {"detail": f"a request must have at most {self.most:,} bytes"}, 413, headers={"Connection": "close"}
        )
        lengths = [value for name, value in scope["headers"] if name == b"content-length"]
        if any(not value.isdigit() or int(value[:20]) > self.most for value in lengths):
            await refuse(scope, receive, send)
            return
        body, more = bytearray(), True
        while more:
            message = await receive()
            if message["type"] == "http.disconnect":
                return
            body += message.get("body", b"")
            more = message.get("more_body", False)
            if len(body) > self.most:
                await refuse(scope, receive, send)
                return
        read: list[Message] = [{"type": "http.request", "body": bytes(body), "more_body": False}]

        async def again() -> Message:
            return read.pop() if read else await receive()

        await self.app(scope, again, send)


class Ask(BaseModel):
    """A request: unknown names, infinities and not-a-number are refused."""

    model_config = ConfigDict(extra="forbid", allow_inf_nan=False)


class Point(Ask):
    """A location in degrees."""

    lat: float = Field(strict=True, ge=-90, le=90, description="Latitude in degrees")
    lon: float = Field(strict=True, ge=-180, le=180, description="Longitude in degrees")


class Promised(BaseModel):
    """The part of every answer about its privacy."""

    epsilon: float = Field(description="Privacy loss per metre")
    mean_error: float = Field(description="Mean distance between true location and report, in metres")
    sentence: str = Field(description="The promise in words")


class Privacy(Ask):
    """How much privacy: epsilon = ln(factor) / radius."""

    factor: float = Field(
        4.0, ge=1.1, le=100, description="The odds between places within the radius change by this factor at most"
    )
    radius: float = Field(100.0, ge=10, le=2000, description="The radius of the promise, in metres")

    @property
    def noise(self) -> SphericalLaplace:
        """The mechanism with this promise."""
        return SphericalLaplace(epsilon_for(math.log(self.factor), self.radius))

    @property
    def promise(self) -> Promised:
        """The promise, as an answer states it."""
        noise = self.noise
        return Promised(
            epsilon=noise.epsilon,
            mean_error=noise.mean_radius,
            sentence=f"Between two places up to {self.radius:g} m apart, a report changes an observer's odds "
            f"by a factor of {self.factor:g} at most.",
        )
