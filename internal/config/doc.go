// Package config reads the configuration: TOML files, environment and flags, laid
// over each other key by key.
//
//	defaults                                   the zero value of each part's struct
//	/etc/belljar/belljar.toml                  the machine's
//	$XDG_CONFIG_HOME/belljar/belljar.toml      the user's
//	--config FILE                              named for this call
//	BELLJAR_*                                  see below
//	flags                                      of the command
//
// Later ones win. Lists are replaced as a whole, tables are joined. A file that
// has an unknown key or a wrong value is refused as a whole, with every problem
// and its line: a configuration that is half understood would protect half.
//
// A belljar.toml in the working directory may have come with a stranger's files.
// It is read after these files, before the environment, and can only narrow what
// they allow: fewer tools, tighter limits, a higher minimum. What it says beyond that is ignored,
// and said (Loaded.Notes). Named with --config it is a file like any other.
//
// The environment variables, all others named BELLJAR_ are noted as unknown:
//
//	BELLJAR_CONFIG      the file of --config, where the flag is not given
//	BELLJAR_STATE_DIR   the folder for the journal, where audit.path is not set
//	BELLJAR_WORKSPACE   workspace.path
//	BELLJAR_MCP_CONFIG  mcp.config
//	BELLJAR_MINIMUM     sandbox.minimum
//	BELLJAR_AUDIT_PATH  audit.path
//	BELLJAR_AUDIT_REQUIRED  audit.required (true or false)
//	BELLJAR_PYTHON      languages.python.interpreter
//
// Relative paths are relative to the working directory, wherever they stand.
package config
