"""Makes pages of the files at the top of the repository, and points links between them and `docs/` to where each page is."""

import posixpath
import re
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

PAGES = {
    "ARCHITECTURE.md": "how_it_works.md",
    "CHANGELOG.md": "changelog.md",
    "CONTRIBUTING.md": "contributing.md",
    "SECURITY.md": "security.md",
}
OTHER_NAMES = {"README.md": "index.md"}  # each is the beginning where it lies
FENCE = re.compile(r"^\s*(```|~~~)")
LINK = re.compile(r"(?<!!)\[(?P<text>[^\]]*)\]\((?P<target>[^)\s#]+)(?P<anchor>#[^)\s]*)?\)")


def on_files(files: Files, *, config: MkDocsConfig) -> Files:
    top = Path(config.config_file_path).parent
    for name, page in PAGES.items():
        files.append(File.generated(config, page, content=(top / name).read_text(encoding="utf-8")))
    return files


def on_page_markdown(markdown: str, *, page: Page, config: MkDocsConfig, files: Files) -> str:
    top = Path(config.config_file_path).parent
    own = page.file.src_uri
    folder = "" if own in PAGES.values() else posixpath.dirname(posixpath.join("docs", own))
    lines, fenced = [], False
    for line in markdown.split("\n"):
        if FENCE.match(line):
            fenced = not fenced
        lines.append(line if fenced else LINK.sub(lambda link: pointed(link, folder=folder, own=own, top=top), line))
    return "\n".join(lines)


def pointed(link: re.Match, *, folder: str, own: str, top: Path) -> str:
    """A link as it has to be on the site: to the page of what it names, and of a file that has no page the text alone."""
    target, anchor = link["target"], link["anchor"] or ""
    if re.match(r"[a-z]+:", target):
        return link[0]
    place = posixpath.normpath(posixpath.join(folder, target))
    if place.startswith("docs/"):
        page = place.removeprefix("docs/")
    elif place in PAGES or place in OTHER_NAMES:
        page = (PAGES | OTHER_NAMES)[place]
    elif (top / place).exists():
        return link["text"]
    else:
        return link[0]  # mkdocs says that it leads nowhere
    return f"[{link['text']}]({posixpath.relpath(page, posixpath.dirname(own) or '.')}{anchor})"
