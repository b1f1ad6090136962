"""`gompfs completion`: what a shell needs to complete gompfs commands."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class


@click.command("completion")
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def completion_command(shell: str) -> None:
    """Print the script that lets SHELL complete commands, options, and paths inside archives.

    \b
    bash: gompfs completion bash > ~/.local/share/bash-completion/completions/gompfs
    zsh:  gompfs completion zsh > ~/.zfunc/_gompfs     (with ~/.zfunc in fpath)
    fish: gompfs completion fish > ~/.config/fish/completions/gompfs.fish
    """
    from gompfs.cli.application import COMPLETION_VARIABLE, PROGRAM_NAME, application

    completion = get_completion_class(shell)
    if completion is None:
        raise click.ClickException(f"click knows no completion for {shell}")
    click.echo(completion(application, {}, PROGRAM_NAME, COMPLETION_VARIABLE).source())
