"""The file types of `gompfs grep --type`: names of ripgrep's types, and globs for their files."""

from __future__ import annotations

from gompfs.errors import OptionError

FILE_TYPES = {
    "asm": "*.S *.asm *.s",
    "c": "*.[chH] *.[chH].in *.cats",
    "cmake": "*.cmake CMakeLists.txt",
    "config": "*.cfg *.conf *.config *.ini",
    "cpp": "*.[ChH] *.[ChH].in *.[ch]pp *.[ch]pp.in *.[ch]xx *.[ch]xx.in *.cc *.cc.in *.hh *.hh.in *.inl",
    "csharp": "*.cs",
    "css": "*.css *.scss",
    "csv": "*.csv",
    "diff": "*.diff *.patch",
    "docker": "*Dockerfile*",
    "fortran": "*.F *.F77 *.F90 *.F95 *.f *.f77 *.f90 *.f95 *.pfo",
    "go": "*.go",
    "h": "*.h *.hpp",
    "haskell": "*.c2hs *.cpphs *.hs *.hsc *.lhs",
    "html": "*.ejs *.htm *.html",
    "java": "*.java *.jsp *.jspx *.properties",
    "js": "*.js *.jsx *.vue",
    "json": "*.json composer.lock",
    "julia": "*.jl",
    "kotlin": "*.kt *.kts",
    "log": "*.log",
    "lua": "*.lua",
    "make": "*.mak *.mk [Gg][Nn][Uu]makefile [Gg][Nn][Uu]makefile.am [Gg][Nn][Uu]makefile.in [Mm]akefile "
    "[Mm]akefile.am [Mm]akefile.in",
    "markdown": "*.markdown *.md *.mdown *.mkdn",
    "md": "*.markdown *.md *.mdown *.mkdn",
    "perl": "*.PL *.perl *.pl *.plh *.plx *.pm *.t",
    "php": "*.php *.php3 *.php4 *.php5 *.phtml",
    "protobuf": "*.proto",
    "py": "*.py",
    "r": "*.R *.Rmd *.Rnw *.r",
    "rst": "*.rst",
    "ruby": "*.gemspec *.rb *.rbw .irbrc Gemfile Rakefile config.ru",
    "rust": "*.rs",
    "scala": "*.sbt *.scala",
    "sh": "*.bash *.bashrc *.csh *.cshrc *.ksh *.kshrc *.sh *.tcsh *.zsh .bash_login .bash_logout .bash_profile "
    ".bashrc .cshrc .kshrc .login .logout .profile .tcshrc .zlogin .zlogout .zprofile .zshenv .zshrc bash_login "
    "bash_logout bash_profile bashrc profile zlogin zlogout zprofile zshenv zshrc",
    "sql": "*.psql *.sql",
    "swift": "*.swift",
    "tex": "*.bib *.cls *.dtx *.ins *.ltx *.sty *.tex",
    "toml": "*.toml Cargo.lock",
    "ts": "*.ts *.tsx",
    "txt": "*.txt",
    "xml": "*.dtd *.rng *.sch *.xhtml *.xjb *.xml *.xml.dist *.xsd *.xsl *.xslt",
    "yaml": "*.yaml *.yml",
}
"""Globs by the name of a type. The list is a selection of ripgrep's."""


def globs_of(name: str) -> list[str]:
    """Returns the globs of a type. Raises OptionError."""
    globs = FILE_TYPES.get(name)
    if globs is None:
        raise OptionError(f"unknown file type {name!r}; the types are {', '.join(FILE_TYPES)}")
    return globs.split()
