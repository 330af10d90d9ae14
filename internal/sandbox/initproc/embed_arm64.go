package initproc

import _ "embed"

//go:embed spawner/spawner_arm64
var spawnerBinary []byte
