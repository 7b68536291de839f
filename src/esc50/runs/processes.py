"""A run of a sweep on several devices, in processes of its own.

Lightning starts the other processes by repeating the command it runs in. In a sweep that would be the whole sweep, so that each
run gets a command that says nothing but this run: `python -m esc50.runs.processes <folder with request.json>`.
"""

import json
import logging
import logging.config
import subprocess
import sys
import tempfile
from pathlib import Path

from omegaconf import DictConfig, OmegaConf

from esc50.config.names import job_logging
from esc50.errors import Esc50Error, TrainingError, readable_errors
from esc50.files import write_atomically

REQUEST, ANSWER = "request.json", "answer.json"


def train_in_own_processes(cfg: DictConfig, folder: Path, sweep: Path) -> float | None:
    """The same as `resuming.train_or_skip`, from within a process that has other runs to start, too. Raises TrainingError with
    the reason where the run fails."""
    with tempfile.TemporaryDirectory(prefix="esc50-") as place:
        exchange = Path(place)
        request = {
            "config": OmegaConf.to_container(cfg, resolve=True),
            "folder": str(folder),
            "sweep": str(sweep),
            "logging": job_logging(),
        }
        (exchange / REQUEST).write_text(json.dumps(request), encoding="utf-8")
        with subprocess.Popen([sys.executable, "-m", "esc50.runs.processes", place]) as first:
            status = first.wait()
        answered = (exchange / ANSWER).is_file()
        if status != 0 and not answered:
            raise TrainingError(f"its processes ended with status {status}; what they said before tells why")
        if not answered:  # a cluster started each process of this run, and this is not the first
            return None
        answer = json.loads((exchange / ANSWER).read_text(encoding="utf-8"))
    if answer["failure"] is not None:
        raise TrainingError(answer["failure"])
    return answer["val_accuracy"]


def main(exchange: Path) -> None:
    """One of the processes; the first answers for all."""
    from esc50.runs.resume import train_or_skip
    from esc50.training.quiet import is_first_process, quieten

    request = json.loads((exchange / REQUEST).read_text(encoding="utf-8"))
    logging.config.dictConfig(request["logging"])
    quieten()
    asked = OmegaConf.create(request["config"]), Path(request["folder"]), Path(request["sweep"])
    if not is_first_process():  # what goes wrong here ends it, and its end ends the others
        train_or_skip(*asked)
        return
    accuracy, failure = None, None
    try:
        accuracy = train_or_skip(*asked)
    except (Esc50Error, OSError) as error:
        failure = str(error)
    except Exception as error:
        logging.getLogger(__name__).exception("this run failed")
        failure = f"{type(error).__name__}: {error}"
    with write_atomically(exchange / ANSWER) as temporary:
        temporary.write_text(json.dumps({"val_accuracy": accuracy, "failure": failure}), encoding="utf-8")


if __name__ == "__main__":
    with readable_errors():
        main(Path(sys.argv[1]))
