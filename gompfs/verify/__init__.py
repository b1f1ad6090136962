"""Checks a whole archive against the format: every block, the index, the grammars, and earlier generations."""

from gompfs.verify.archive_check import Damage, VerifyReport, verify_archive

__all__ = ["Damage", "VerifyReport", "verify_archive"]
