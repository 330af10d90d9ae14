# What a script meets when it asks for more than it may have: an exception that
# says why, after which it goes on.
#
#   belljar run --workspace . examples/denied.py
#   belljar run --workspace . --fence list_dir examples/denied.py
for name, arguments in [
    ("list_dir", {"path": "."}),
    ("find_files", {"pattern": "*.md"}),
    ("read_file", {"path": "../../etc/passwd"}),
    ("drop_table", {"table": "users"}),
    ("execute_code", {"code": "print(1)"}),
]:
    try:
        answer = tools(name, **arguments)
        print(f"{name}: {len(answer)} entries")
    except tools.ToolError as error:
        kind = "denied" if error.denied else "failed"
        print(f"{name}: {kind}: {error}")
