"""The commands of `tailo`, one in each file, and what they show; nothing else prints.

`tailo --help` imports all of these files, so what takes long to import is imported where it is used.
"""
