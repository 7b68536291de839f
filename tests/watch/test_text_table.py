"""A table shows what stands in its cells, through TensorBoard's own reader of markdown."""

import html
import re
import warnings

import pytest

from esc50.watch.text_table import text_table


def shown(text: str) -> list[str]:
    """The cells of the table's body as a browser shows them."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of what TensorBoard imports
        from tensorboard.plugin_util import markdown_to_safe_html
    cells = re.findall("<td>(.*?)</td>", markdown_to_safe_html(text))
    assert not any("<" in cell for cell in cells), "what should be letters became markup"
    return [html.unescape(cell) for cell in cells]


@pytest.mark.parametrize(
    "name",
    [
        "dog",
        "clock_alarm",
        "_a_",
        "*loud*",
        "a|b",
        "<em>x</em>",
        "&lt;",
        "Q&A",
        "[l](u)",
        "`x`",
        "a\\b",
        "#1",
        "{x}",
        "- x",
        "Käfer 猫",
    ],
)
def test_a_name_is_shown_as_it_is(name):
    assert shown(text_table(("class", "clips"), [(name, 3), ("last", 4)])) == [name, "3", "last", "4"]


def test_a_line_break_does_not_break_the_table():
    assert shown(text_table(("class", "clips"), [("a\nb", 3)])) == ["a b", "3"]
