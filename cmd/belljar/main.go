// Belljar runs model-written code under glass. See package cli.
package main

import (
	"os"

	"github.com/belljar/belljar/internal/cli"
)

func main() { os.Exit(cli.Main()) }
