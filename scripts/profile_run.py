"""Where does the time go? A flame graph (py-spy) of a training run; takes the settings of train.py."""

import sys

from esc50.config import readable_errors


def main() -> None:
    with readable_errors():
        from esc50.profiling import profile

        sys.exit(profile(sys.argv[1:], show=print))


if __name__ == "__main__":
    main()
