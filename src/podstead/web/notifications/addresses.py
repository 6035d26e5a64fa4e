"""The URLs of channels, and their descriptions (N-9, N-20 to N-23)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from podstead.core.identifiers import ResourcePath
from podstead.notifications.channel_documents import DescribedChannel
from podstead.notifications.channel_types import SERVICES, ChannelType
from podstead.notifications.channels import Channel

SENDER: Final = ResourcePath(f"{SERVICES}sender")
"""The document about the sender of webhooks, whose WebID is ``#it``."""


@dataclass(frozen=True, slots=True)
class Addresses:
    """Creates URLs; ``base_url`` has no slash at its end."""

    base_url: str
    sockets_base_url: str = ""
    """The same for sockets, if it is another; http or https."""

    def describe(
        self, key: str, channel: Channel, *, given_up: str | None = None
    ) -> DescribedChannel:
        """The description of a channel; ``given_up`` is the reason why nothing is sent on it any
        more."""
        channel_type = ChannelType(channel.channel_type)
        return DescribedChannel(
            url=self.base_url + channel_path(channel_type, key),
            channel_type=channel_type,
            topic_url=self.base_url + channel.topic,
            end_ms=channel.end_ms,
            media_type=channel.media_type,
            start_ms=channel.start_ms,
            rate_ms=channel.rate_ms,
            state=channel.state,
            receive_from=self.receive_from(channel_type, key),
            send_to=channel.send_to,
            sender=self.sender if channel_type.is_pushed else None,
            comment=None if given_up is None else f"Nothing is sent any more: {given_up}",
        )

    @property
    def sender(self) -> str:
        """The WebID of this server, as the sender of webhooks."""
        return f"{self.base_url}{SENDER}#it"

    def receive_from(self, channel_type: ChannelType, key: str) -> str | None:
        """The URL that a receiver connects to, ``None`` for a channel that pushes."""
        if channel_type.is_pushed:
            return None
        path = receiving_path(channel_type, key)
        if channel_type is not ChannelType.WEB_SOCKET:
            return self.base_url + path
        # ws for http, wss for https
        return f"ws{(self.sockets_base_url or self.base_url)[len('http') :]}{path}"


def channel_path(channel_type: ChannelType, key: str) -> ResourcePath:
    """The path for reading and closing a channel; ``{key}`` as the key gives a pattern."""
    return ResourcePath(f"{channel_type.service}{key}")


def receiving_path(channel_type: ChannelType, key: str) -> ResourcePath:
    """The path that a receiver connects to; ``{key}`` as the key gives a pattern."""
    return ResourcePath(f"{channel_path(channel_type, key)}/messages")
