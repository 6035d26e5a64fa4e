from urllib.parse import unquote

import pytest

from podstead.notifications.channel_types import ChannelType, stream_of_resource


@pytest.mark.parametrize(
    "url",
    [
        "http://localhost:3000/",
        "http://localhost:3000/alice/notes/",
        "http://localhost:3000/alice/notes/a%20b.ttl",
        "http://localhost:3000/alice/a,b;c=(d)@e/.acl",
        "https://pod.example/" + "long/" * 200 + "name",
    ],
)
def test_the_path_of_a_stream_ends_in_one_segment_that_decodes_to_the_url(url: str) -> None:
    """N-22"""
    for _ in range(2):
        stream = stream_of_resource(url)
        segment = stream.removeprefix(ChannelType.STREAMING_HTTP.service)
        assert "/" not in segment
        assert unquote(segment) == url
