"""One page of Markdown as HTML: links to the pages of the site, headings with names, coloured code, figures."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from html import escape

from markdown_it import MarkdownIt
from markdown_it.token import Token
from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import get_lexer_by_name

from website.figures import PICTURE

_COMMENT = re.compile(r"\s*<!--.*?-->\s*", re.S)
_LINES_OF_CODE = re.compile(r"^>>> .*?(?=\n\n|\Z)", re.S | re.M)
_FENCE = re.compile(r"^(```.*?^```[^\n]*$)", re.S | re.M)
# Powers and indices as plain text has them: e^ε, e^(−tε/Δf), 2^-24, o_i, f(y)_i.
_NESTED = r"(?:[^()]|\((?:[^()]|\([^()]*\))*\))+"  # with two levels of brackets inside
_POWER = re.compile(rf"\^(?:\(({_NESTED})\)|([−-]?\w+(?:\.\w+)*))")
_INDEX = re.compile(r"(?:(?<=\))|(?<=(?<!\w)[^\W\d_]))_(\w)(?!\w)")
_LANGUAGES = {"": "text", "js": "javascript", "sh": "bash"}


@dataclass(frozen=True, slots=True)
class Section:
    """What stands under one heading, for the search."""

    anchor: str
    heading: str
    level: int
    words: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Page:
    """A page without what is around it."""

    title: str
    html: str
    sections: tuple[Section, ...]


class UnreadableMarkdown(Exception):
    """A page holds something that the site cannot show."""


def render_page(text: str, resolve: Callable[[str], str], figures: Sequence[str]) -> Page:
    """A page from its Markdown. ``resolve`` makes the target of a link an address; figures stand at their marks."""
    reader = MarkdownIt("commonmark", {"html": True, "highlight": _colour}).enable("table")
    tokens = reader.parse(_fence_sessions(text))
    left = list(figures)
    sections = [Section("", "", 1)]
    for place, token in enumerate(tokens):
        if token.type == "heading_open":
            section = Section(*_name_heading(tokens[place + 1], sections), level=int(token.tag[1:]))
            token.attrSet("id", section.anchor)
            sections.append(section)
        elif token.type == "html_block":
            _replace_comment(token, left)
        elif token.type == "inline":
            _follow_links(token, resolve)
            if tokens[place - 1].type != "heading_open":
                sections[-1].words.append(_read_words(token))
            _raise_powers(token)
        elif token.type == "fence":
            token.info = _find_language(token)
            sections[-1].words.append(token.content)
    html = reader.renderer.render(tokens, reader.options, {})
    html = html.replace("<table>", '<div class="table"><table>').replace("</table>", "</table></div>")
    found = tuple(sections[1:])
    return Page(found[0].heading if found else "", html, found)


def _fence_sessions(text: str) -> str:
    """Lines of code that stand in a page without a fence get one: Markdown reads ``>>>`` as a quotation."""
    parts = _FENCE.split(text)
    outside = (_LINES_OF_CODE.sub(lambda code: f"```pycon\n{code[0]}\n```", part) for part in parts[::2])
    inside = [*parts[1::2], ""]
    return "".join(part for pair in zip(outside, inside) for part in pair)


def name_anchor(heading: str) -> str:
    """The name of a heading in links, as GitHub makes it.

    >>> name_anchor("Why ε? A (short) answer")
    'why-ε-a-short-answer'
    """
    return re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", "-")


def _name_heading(inline: Token, earlier: Sequence[Section]) -> tuple[str, str]:
    words = _read_words(inline)
    anchor = name_anchor(inline.content)
    same = sum(re.fullmatch(rf"{re.escape(anchor)}(-\d+)?", section.anchor) is not None for section in earlier)
    return (f"{anchor}-{same}" if same else anchor), words


def _read_words(inline: Token) -> str:
    return "".join(" " if child.type.endswith("break") else child.content for child in inline.children or ())


def _replace_comment(token: Token, figures: list[str]) -> None:
    """A mark of a picture becomes the picture; another comment goes; anything else is refused."""
    picture = PICTURE.fullmatch(token.content.strip())
    if picture is not None:
        alternative = escape(" ".join(picture[1].split()), quote=True)
        token.content = (
            f'<figure class="drawn"><div role="img" tabindex="0" aria-label="{alternative}">{figures.pop(0)}</div>'
            f"<figcaption>{alternative}</figcaption></figure>\n"
        )
    elif _COMMENT.fullmatch(token.content):
        token.content = ""
    else:
        raise UnreadableMarkdown(f"HTML in a page: {token.content.strip()[:60]}")


def _follow_links(inline: Token, resolve: Callable[[str], str]) -> None:
    for child in inline.children or ():
        if child.type == "html_inline" and not _COMMENT.fullmatch(child.content):
            raise UnreadableMarkdown(f"HTML in a page: {child.content[:60]}")
        for name in ("href", "src"):
            target = child.attrGet(name)
            if target is not None:
                child.attrSet(name, resolve(str(target)))


def _raise_powers(inline: Token) -> None:
    for child in inline.children or ():
        if child.type == "text" and re.search(r"[\^_]", child.content):
            raised = _POWER.sub(lambda hit: f"<sup>{hit[1] or hit[2]}</sup>", escape(child.content, quote=False))
            child.type, child.content = "html_inline", _INDEX.sub(r"<sub>\1</sub>", raised)


def _find_language(fence: Token) -> str:
    return "console" if not fence.info and fence.content.startswith("$ ") else fence.info.strip()


def _colour(code: str, language: str, _attributes: str) -> str:
    lexer = get_lexer_by_name(_LANGUAGES.get(language, language))
    coloured = highlight(code, lexer, HtmlFormatter(nowrap=True))
    return f'<pre class="code" data-language="{escape(language)}" tabindex="0"><code>{coloured}</code></pre>'


def colour_file(name: str, text: str) -> str:
    """A file of the project as coloured code."""
    kind = {"py": "python", "json": "json", "toml": "toml", "sql": "sql"}
    return _colour(text, kind.get(name.rpartition(".")[2], "text"), "")
