"""Renders content in a process of its own, ``python -I -m podstead.features.previews.rendering``.

See :mod:`podstead.app.adapters.guarded_processes`.
"""

from collections.abc import Mapping

from podstead.app.adapters.guarded_child import carry_out_task


def _carried_out(task: str, arguments: Mapping[str, str], content: bytes) -> bytes:
    # Each task loads its own libraries and no others.
    if task == "thumbnail":
        from podstead.features.previews.pictures import thumbnail

        return thumbnail(content)
    if task == "square":
        from podstead.features.previews.pictures import square

        return square(content, **arguments)
    if task == "taken":
        from podstead.features.previews.pictures import when_taken

        return when_taken(content)
    text = content.decode()
    if task == "markdown":
        from podstead.features.previews.markdown import markdown

        return markdown(text, **arguments).encode()
    from podstead.features.previews.source import highlight

    return highlight(text, **arguments).encode()


if __name__ == "__main__":
    carry_out_task(_carried_out)
