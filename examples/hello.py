# A program by itself: no tools, nothing outside its sandbox.
#
#   belljar run examples/hello.py
#   echo "Ada Lovelace" | belljar run examples/hello.py
import os
import sys

name = sys.stdin.read().strip() or "world"
print(f"Hello, {name}.")
print(f"Python {sys.version.split()[0]}, process {os.getpid()}, working in {os.getcwd()}")
