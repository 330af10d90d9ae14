# Reads a whole folder through tools and prints a digest of it. The files, which
# may be megabytes, go into this script alone; only the digest comes back.
#
#   belljar run --workspace . examples/digest.py
import collections
import os

LANGUAGES = {
    ".go": "Go", ".py": "Python", ".js": "JavaScript", ".jsx": "JavaScript", ".mjs": "JavaScript",
    ".ts": "TypeScript", ".tsx": "TypeScript", ".c": "C", ".h": "C", ".cc": "C++", ".cpp": "C++",
    ".hpp": "C++", ".rs": "Rust", ".java": "Java", ".kt": "Kotlin", ".rb": "Ruby", ".php": "PHP",
    ".sh": "Shell", ".erl": "Erlang", ".ex": "Elixir", ".cs": "C#", ".swift": "Swift", ".lua": "Lua",
    ".md": "Markdown", ".txt": "Text", ".toml": "TOML", ".yaml": "YAML", ".yml": "YAML",
    ".json": "JSON", ".html": "HTML", ".css": "CSS", ".sql": "SQL",
}
COMMENT = {"Python": "#", "Shell": "#", "Ruby": "#", "Elixir": "#", "TOML": "#", "YAML": "#",
           "Erlang": "%", "SQL": "--", "Lua": "--"}
PROSE = {"Markdown", "Text", "JSON", "HTML"}
PASS_OVER = {"node_modules", "vendor", "third_party", "build", "dist", "target", "__pycache__"}
MOST = 500  # files that are read

# Folder by folder, so that one with thousands of other people's files is never asked for.
roots = [e["name"] for e in tools.list_dir(path=".")
         if e["type"] == "folder" and e["name"][0] != "." and e["name"] not in PASS_OVER]
paths = tools.find_files(pattern="./*", max_results=100000)
for root in roots:
    paths += tools.find_files(pattern="**", path=root, max_results=100000)
paths = [p for p in paths if PASS_OVER.isdisjoint(p.split("/"))]
known = [p for p in paths if os.path.splitext(p)[1].lower() in LANGUAGES]

lines_by_language = collections.Counter()
lines_by_folder = collections.Counter()
lines_by_file = collections.Counter()
comments_by_file = {}
unreadable = characters = 0

for path in known[:MOST]:
    try:
        text = tools.read_file(path=path)
    except tools.ToolError:  # not UTF-8, too large, gone meanwhile
        unreadable += 1
        continue
    language = LANGUAGES[os.path.splitext(path)[1].lower()]
    lines = text.splitlines()
    characters += len(text)
    lines_by_language[language] += len(lines)
    lines_by_folder[os.path.dirname(path) or "."] += len(lines)
    lines_by_file[path] = len(lines)
    if language not in PROSE and len(lines) >= 40:
        mark = COMMENT.get(language, "//")
        comments = sum(line.lstrip().startswith(mark) for line in lines)
        comments_by_file[path] = comments / len(lines)

exported = collections.Counter()
notes = collections.Counter()
symbols = r"^(func (\([^)]*\) )?[A-Z]|type [A-Z]|def [a-z]|class [A-Z]|export |pub (fn|struct|enum) )"
for root in roots:
    for hit in tools.search_files(pattern=symbols, path=root, max_results=20000):
        exported[os.path.dirname(hit["path"])] += 1
    for hit in tools.search_files(pattern=r"\b(TODO|FIXME)\b", path=root, max_results=1000):
        notes[hit["path"]] += 1


def top(counter, n=4, form="{} ({:,})"):
    return ", ".join(form.format(*item) for item in counter.most_common(n)) or "none"


folders = len({os.path.dirname(p) for p in paths})
print(f"{len(paths):,} files in {folders:,} folders; {len(lines_by_file):,} read, "
      f"{sum(lines_by_file.values()):,} lines, {characters / 1e6:.2f} MB")
print("Lines by language:", top(lines_by_language))
print("Largest folders:  ", top(lines_by_folder))
print("Largest files:    ", top(lines_by_file, 3))
print("Public symbols:   ", top(exported))
print("Most commented:   ", top(collections.Counter(comments_by_file), 3, "{} ({:.0%})"))
print(f"Open notes:        {sum(notes.values()):,} in {len(notes):,} files")
left = len(known) - MOST
if left > 0 or unreadable:
    print(f"Not read:          {max(left, 0):,} more than {MOST}, {unreadable:,} that are no readable text")
