export PATH := justfile_directory() + "/.venv/bin:" + env_var("PATH")

# Lint and test
default: lint test

# The environment with all that the tests need
setup:
    tools/setup test

# Linters, types, layers, format of the C++ code
lint: setup
    ruff check .
    mypy
    lint-imports
    find kernels -name '*.h' -o -name '*.cpp' | xargs clang-format --dry-run -Werror

# Tests of the installed package; arguments go to pytest
test *arguments:
    tools/test {{arguments}}

# Pack, mount and read the sample texts
demo:
    tools/demo

# Format the C++ code
format: setup
    find kernels -name '*.h' -o -name '*.cpp' | xargs clang-format -i

# The man page
man: setup
    python tools/man.py gompfs.1
