# Asked once of an interpreter: what it is and which folders it lives in.
import json
import os
import site
import sys

folders = []
for name in ("prefix", "exec_prefix", "base_prefix", "base_exec_prefix"):
    folders.append(getattr(sys, name, sys.prefix))
packages = [p for p in sys.path if p and os.path.isdir(p)]
packages += [p for p in site.getsitepackages() if os.path.isdir(p)]

print(json.dumps({
    "version": "%d.%d.%d" % sys.version_info[:3],
    "executable": sys.executable,
    "isolated": sys.prefix != getattr(sys, "base_prefix", sys.prefix),
    "folders": folders,
    "packages": packages,
}))
