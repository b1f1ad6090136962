"""Statistics on devices.

- `forest`: the rules and terms of a grammar in device memory; `traversal`: counts terms, top-down or bottom-up;
  `local_tables`: the tables of a traversal, and the sorted pairs that are its result.
- `device_counter`: counts words, n-grams and postings on a device, range by range.
- `resident_forest`, `resident_text`: words that stay in device memory; `device_rows`: rows that were counted there.

Answers from them are in `gompfs.statistics.resident_answers`.
"""
