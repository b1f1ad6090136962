export PATH := justfile_directory() + "/.venv/bin:" + env_var("PATH")

# Lint and test
default: lint test

# The environment with all that the tests need
setup:
    tools/setup test

# Linters, types, layers, format of the C++ code
lint: setup
    ruff check .
    ruff format --check .
    mypy
    lint-imports
    find kernels native tests tools -name '*.h' -o -name '*.cpp' -o -name '*.cu' -o -name '*.cuh' | xargs clang-format --dry-run -Werror

# Tests of the installed package; arguments go to pytest
test *arguments:
    tools/test {{arguments}}

# Pack, mount and read a sample tree
demo:
    tools/demo

# Format the C++ code
format: setup
    find kernels native tests tools -name '*.h' -o -name '*.cpp' -o -name '*.cu' -o -name '*.cuh' | xargs clang-format -i

# What is committed but comes from the code: man pages and tables in docs/reference
generate: setup
    python tools/man.py
    python tools/documentation.py

# The documentation as a site, in build/site
docs:
    tools/setup docs
    mkdocs build --strict

# The picture in README.md
picture: setup
    python tools/session.py --picture docs/images/session.svg
