"""Statistics of the text in an archive: the tasks of TADOC and a few more, computed on grammars.

    tasks           the table of tasks: their names, help, columns, options and functions; `compute`
    query, source   the parameters of a statistic; the archive and the grammars that it is computed from
    word_counts, postings, search, info
                    the functions of the tasks
    report, records the text of a statistic, made piece by piece; its lines as JSON values
    formats, tables, line_format
                    the text as JSON Lines, Arrow or Parquet
    content*        the words of files that no grammar covers
    device_*        the parts that run on a GPU

The names of all tasks are known to every mount. So `tasks`, and the modules that it imports, import NumPy only when a
statistic is computed.
"""
