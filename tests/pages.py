"""A reader of HTML that insists on a whole, self-contained page."""

from html.parser import HTMLParser

VOID = {"meta", "br", "img", "link", "hr", "input"}
NAMED = ("href", "xlink:href", "src", "srcset", "action", "data", "poster")


class Page(HTMLParser):
    """What is on a page: text by element, identifiers, references.

    Raises:
        AssertionError: a tag that is not closed where it must be, an identifier given twice, a reference to what is not
            on the page, anything that would be fetched or run.
    """

    def __init__(self, markup: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.texts: dict[str, list[str]] = {}  # of each element of a kind, with all that is within it
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self._within: list[list[str]] = []
        self.feed(str(markup))
        self.close()
        assert not self.open, f"never closed: {self.open}"
        identifiers = [names["id"] for _, names in self.elements if "id" in names]
        assert len(identifiers) == len(set(identifiers))
        for tag, names in self.elements:
            assert tag not in ("script", "link", "iframe", "object", "embed"), tag
            for name, value in names.items():
                assert not name.startswith("on"), name
                if name in NAMED:
                    assert value is not None
                    assert value.startswith(("#", "data:image/png;base64,")), value
                    assert not value.startswith("#") or value[1:] in identifiers, value
                elif value is not None and "url(" in value:
                    assert value.split("url(#")[1].split(")")[0] in identifiers, value
        assert "url(" not in "".join(self.texts.get("style", []))
        assert "@import" not in "".join(self.texts.get("style", []))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)
            self._within.append([])

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag, tag
        text = "".join(self._within.pop())
        self.texts.setdefault(tag, []).append(text)
        if self._within:
            self._within[-1].append(text)

    def handle_data(self, data: str) -> None:
        if self._within:
            self._within[-1].append(data)

    def all(self, tag: str) -> list[dict[str, str | None]]:
        """Attributes of every element of a kind."""
        return [names for found, names in self.elements if found == tag]
