"""A page for the browser: drop or record a sound, see what the model hears in it and where it looks."""

import logging
import os
import signal
import sys
import tempfile
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from esc50.data import audio
from esc50.drawing import pixels
from esc50.errors import ConfigError, DataError, require
from esc50.explain.map_picture import draw_maps
from esc50.inference.maps import explained
from esc50.inference.predictor import Predictor
from esc50.inference.recordings import Cut, pieces_of_file
from esc50.inference.rows import clock, worth

if TYPE_CHECKING:
    import gradio

NUM_ROWS = 4  # windows of a long recording in the picture
# What ends a program from outside, a closed terminal too (which Windows does not tell).
ENDINGS = [signal.SIGTERM, *([signal.SIGHUP] if hasattr(signal, "SIGHUP") else [])]
PREDICTED = "the predicted class"
CHECK_SECONDS, KEEP_SECONDS = 60, 600  # how often uploads are looked through, and how old they may become
# The browser itself refuses to load from or send to any other place.
POLICY = b"default-src 'self' 'unsafe-inline' 'unsafe-eval' data: blob:; connect-src 'self' data: blob:"


@dataclass(frozen=True, kw_only=True)
class Limits:
    """What may be uploaded, and when the answer is `unknown`, as in `Predictor.predict`."""

    max_megabytes: float
    max_seconds: float
    min_probability: float | None = None
    max_entropy: float | None = None


def serve(predictor: Predictor, *, host: str, port: int, limits: Limits, opened: Callable[[str], None]) -> None:
    """Show the page at `host`:`port` until interrupted; `opened` is told the address. Uploads lie in a temporary folder, are
    removed when they are ten minutes old and all at the end. Nothing is sent anywhere. Raises ConfigError where the port is
    taken, or Gradio is not installed."""
    os.environ |= {"GRADIO_ANALYTICS_ENABLED": "False", "HF_HUB_DISABLE_TELEMETRY": "1"}
    for name in ("no_proxy", "NO_PROXY"):  # Gradio asks its own address whether it is up
        os.environ[name] = ",".join(filter(None, [os.environ.get(name), host, "localhost", "127.0.0.1"]))
    logging.getLogger("httpx").setLevel(logging.WARNING)
    require("the page", "gradio")
    import gradio

    with tempfile.TemporaryDirectory(prefix="esc50_uploads_") as uploads:
        os.environ["GRADIO_TEMP_DIR"] = uploads
        for ending in ENDINGS:
            signal.signal(ending, _end)
        page = build_page(predictor, limits)
        try:
            page.launch(
                server_name=host,
                server_port=port,
                share=False,
                prevent_thread_lock=True,
                quiet=True,
                ssr_mode=False,
                max_file_size=round(limits.max_megabytes * 1e6),
                show_error=True,
                footer_links=[],
                enable_monitoring=False,
                theme=gradio.themes.Default(font="sans-serif", font_mono="monospace"),
                app_kwargs={"middleware": [_policy()]},
            )
        except OSError as error:
            raise ConfigError(f"host={host} port={port}: {str(error).splitlines()[0]}; choose another port=") from None
        try:
            opened(page.local_url)  # type: ignore[arg-type]  # Gradio declares it as None
            page.block_thread()
        finally:
            page.close(verbose=False)


def _end(*_: object) -> None:
    """End as Ctrl-C does, so that uploads are removed; a second signal must not end the removing."""
    for name in ENDINGS:
        signal.signal(name, signal.SIG_IGN)
    sys.exit(0)


def build_page(predictor: Predictor, limits: Limits) -> "gradio.Blocks":
    """The page: a recording on the left; the answer, the map and, of a long recording, the time-line on the right."""
    import gradio

    with gradio.Blocks(title="esc50", analytics_enabled=False, delete_cache=(CHECK_SECONDS, KEEP_SECONDS)) as page:
        gradio.Markdown(f"# What is this sound?\n\nDrop a recording or make one. {worth(predictor.description)}")
        with gradio.Row():
            with gradio.Column(scale=2):
                sound = gradio.Audio(
                    sources=["upload", "microphone"],
                    type="filepath",
                    buttons=[],
                    editable=False,
                    elem_id="sound",
                    label=f"Recording: at most {limits.max_megabytes:g} MB, {limits.max_seconds:g} seconds",
                )
                target = gradio.Dropdown([PREDICTED, *predictor.class_names], value=PREDICTED, label="Show what speaks for")
                verdict = gradio.Markdown(elem_id="verdict")
                guesses = gradio.Label(num_top_classes=5, show_heading=False, label="Most probable classes", elem_id="guesses")
            with gradio.Column(scale=5):
                gradio.Markdown("The spectrogram, and where the model looks")
                picture = gradio.Image(show_label=False, buttons=["fullscreen"], format="png", elem_id="map", interactive=False)
                timeline = gradio.Dataframe(
                    headers=["from", "to", "label", "probability"],
                    label="Time-line",
                    visible=False,
                    elem_id="timeline",
                    interactive=False,
                )
        outputs = [verdict, guesses, picture, timeline]
        gradio.on(
            [sound.change, target.change],
            lambda path, name: _shown(predictor, limits, path, name),
            [sound, target],
            outputs,
            api_visibility="private",
            concurrency_limit=1,
        )
    return page


def _shown(predictor: Predictor, limits: Limits, path: str | None, class_name: str) -> tuple[Any, ...]:
    """What stands in verdict, guesses, picture and time-line for an upload."""
    import gradio

    nothing = None, None, gradio.Dataframe(visible=False)
    if path is None:
        return "", *nothing
    try:
        verdict, guesses, image, rows = answer_upload(
            predictor, limits, Path(path), class_name=None if class_name == PREDICTED else class_name
        )
    except DataError as error:
        return str(error), *nothing
    return verdict, guesses, image, gradio.Dataframe(value=rows, visible=bool(rows))


def answer_upload(
    predictor: Predictor, limits: Limits, path: Path, *, class_name: str | None
) -> tuple[str, dict[str, float], np.ndarray | None, list[list[str]]]:
    """The label as a heading, probability of each class, picture `[height, width, 3]` uint8 with the map of `class_name`
    (None: the predicted one), and the time-line's rows. Of a network without maps the picture is None, and the reason stands
    below the heading. Raises DataError, without the server's folders, for what is no sound or too long."""
    try:
        # Reads the beginning, and so refuses what is no sound, before the length is asked for.
        next(pieces_of_file(path, predictor.recipe, Cut()))
        if (seconds := audio.seconds_of(path)) > limits.max_seconds:
            raise DataError(f"{path.name}: {seconds:.1f} seconds; wanted {limits.max_seconds:g} at most")
        found = predictor.predict(path, min_probability=limits.min_probability, max_entropy=limits.max_entropy)
        verdict, picture = f"## {found.label}", None
        try:
            clips = explained(
                predictor,
                pieces_of_file(path, predictor.recipe, Cut()),
                path.name,
                class_name=class_name,
                layer=None,
                num_rows=NUM_ROWS,
            )
            picture = pixels(draw_maps(clips, predictor.recipe))
        except ConfigError as error:
            verdict += f"\n\n{error}"
    except DataError as error:
        raise DataError(str(error).replace(str(path), path.name)) from None
    guesses = dict(zip(predictor.class_names, found.probs.tolist(), strict=True))
    rows = [[clock(one.start), clock(one.end), one.label, f"{one.probability:.1%}"] for one in found.timeline]
    return verdict, guesses, picture, rows


def _policy() -> Any:
    """Middleware that puts POLICY into every answer."""
    from starlette.middleware import Middleware

    class Policy:
        def __init__(self, app: Callable[..., Awaitable[None]]):
            self.app = app

        async def __call__(self, scope: dict, receive: Callable, send: Callable) -> None:
            async def with_policy(message: dict) -> None:
                if message["type"] == "http.response.start":
                    message["headers"] = [*message.get("headers", []), (b"content-security-policy", POLICY)]
                await send(message)

            await self.app(scope, receive, with_policy if scope["type"] == "http" else send)

    return Middleware(Policy)
