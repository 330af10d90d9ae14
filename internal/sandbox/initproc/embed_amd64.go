package initproc

import _ "embed"

//go:embed spawner/spawner_amd64
var spawnerBinary []byte
