"""``tcuda completion``: the script by which a shell completes the commands and their options."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import argparse
    from collections.abc import Mapping

_BASH = """_tcuda() {{
    local word="${{COMP_WORDS[COMP_CWORD]}}" words=""
    if [ "$COMP_CWORD" -eq 1 ]; then
        words="{commands} --help --version"
    else
        case "${{COMP_WORDS[1]}}" in
{cases}
        esac
    fi
    COMPREPLY=()
    while IFS= read -r found; do COMPREPLY+=("$found"); done < <(compgen -W "$words" -- "$word")
}}
complete -o default -F _tcuda tcuda
"""
_SHELLS = ("bash", "zsh", "fish")
_ZSH = "autoload -Uz bashcompinit && bashcompinit\n"


def add_to(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command to the command line."""
    parser = commands.add_parser(
        "completion",
        help="print a script with which a shell completes commands and options",
        description="Print a script with which a shell completes commands and options. For bash: "
        'eval "$(tcuda completion bash)" in ~/.bashrc; for zsh: eval "$(tcuda completion zsh)" in ~/.zshrc; for fish: '
        "tcuda completion fish "
        "> ~/.config/fish/completions/tcuda.fish",
    )
    parser.add_argument("shell", choices=_SHELLS, help="the shell")
    parser.set_defaults(run=lambda options: print(script(options.shell, commands.choices), end=""))


def script(shell: str, parsers: Mapping[str, argparse.ArgumentParser]) -> str:
    """Return the script for ``shell``.

    Args:
        shell: ``"bash"``, ``"zsh"`` or ``"fish"``.
        parsers: The parser of each command.
    """
    options = {name: sorted(parser._option_string_actions) for name, parser in parsers.items()}
    options["completion"] += _SHELLS
    if shell == "fish":
        first = "complete -c tcuda -n __fish_use_subcommand"
        lines = [f"{first} -a '{' '.join(options)}'", f"{first} -l help", f"{first} -l version"]
        for name, words in options.items():
            for word in words:
                kind = "-a" if not word.startswith("-") else "-l" if word.startswith("--") else "-s"
                lines.append(f"complete -c tcuda -n '__fish_seen_subcommand_from {name}' {kind} {word.lstrip('-')}")
        return "\n".join(lines) + "\n"
    cases = "\n".join(f'            {name}) words="{" ".join(words)}" ;;' for name, words in options.items())
    made = _BASH.format(commands=" ".join(options), cases=cases)
    return _ZSH + made if shell == "zsh" else made


__all__ = ["add_to", "script"]
