"""The command line: options, commands and printing. The entry point is ``discreet.cli.main:main``."""
