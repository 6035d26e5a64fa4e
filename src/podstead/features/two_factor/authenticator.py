"""Codes of authenticator apps, and their secrets as QR codes."""

import io

import pyotp
import segno

from podstead.features.two_factor.codes import STEP_S


class PyotpPasswords:
    """Implements :class:`podstead.features.two_factor.codes.OneTimePasswords`."""

    def code(self, secret: str, step: int) -> str:
        """The code of a time step."""
        return pyotp.TOTP(secret, interval=STEP_S).at(step * STEP_S)

    def address(self, secret: str, *, name: str, issuer: str) -> str:
        """The address that an app reads."""
        return pyotp.TOTP(secret, interval=STEP_S).provisioning_uri(name=name, issuer_name=issuer)

    def picture(self, address: str) -> str:
        """An SVG image, black on white in any colour scheme: apps read no other."""
        written = io.BytesIO()
        segno.make(address, error="m", micro=False).save(
            written,
            kind="svg",
            xmldecl=False,
            svgns=True,
            dark="#000",
            light="#fff",
            border=4,
            omitsize=True,
        )
        return written.getvalue().decode("ascii")
