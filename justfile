# Lint and test
default: lint test

# Linters, types, layers
lint:
    ruff check .
    mypy
    lint-imports
    find kernels -name '*.h' -o -name '*.cpp' | xargs clang-format --dry-run -Werror

# Tests of the installed package
test *arguments:
    tools/test {{arguments}}

# Pack, mount and read the sample texts
demo:
    tools/demo

# Format what has a formatter
format:
    find kernels -name '*.h' -o -name '*.cpp' | xargs clang-format -i

# The man page
man:
    .venv/bin/python tools/man.py gompfs.1
