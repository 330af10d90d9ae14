# Calls from many threads at once; each gets its own answer.
#
#   belljar run --workspace . examples/parallel.py
from concurrent.futures import ThreadPoolExecutor

paths = tools.find_files(pattern="*.{go,py,md}", max_results=64)


def longest_line(path):
    try:
        text = tools.read_file(path=path, errors="replace")
    except tools.ToolError as error:
        return 0, path, str(error)
    line = max(text.splitlines() or [""], key=len)
    return len(line), path, line.strip()[:60]


with ThreadPoolExecutor(max_workers=8) as pool:
    found = sorted(pool.map(longest_line, paths), reverse=True)

print(f"longest lines of {len(found)} files:")
for length, path, start in found[:5]:
    print(f"{length:5} {path}: {start}")
