"""``python -m tests.api.command`` is the `executa` command, with the commands tested here.

Where the application has them already, this adds nothing.
"""

from cyclopts import App

from executa_host.cli import app as application
from executa_host.cli.actions import actions_app
from executa_host.cli.keys import keys_app
from executa_host.cli.serve import serve
from executa_host.cli.sessions import sessions_app

_build = application.build


def build(*, eager: bool = True) -> App:
    """The application with `serve`, `keys`, `actions` and `sessions`."""
    app = _build(eager=eager)
    known = set(app)
    for each in (actions_app, sessions_app, keys_app):
        if each.name[0] not in known:
            app.command(each)
    if "serve" not in known:
        app.command(serve)
    return app


if __name__ == "__main__":
    application.build = build
    application.main()
