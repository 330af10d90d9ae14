package cli

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
)

// Version is set by release builds (-ldflags "-X ...cli.Version=1.2.3").
var Version = ""

// versionInfo is the output of version --json.
type versionInfo struct {
	Version  string `json:"version"` // "devel" where the build did not say
	Commit   string `json:"commit"`  // empty where unknown
	Go       string `json:"go"`
	Platform string `json:"platform"`
}

func version() versionInfo {
	v := versionInfo{Version: Version, Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH}
	if info, ok := debug.ReadBuildInfo(); ok {
		if v.Version == "" && info.Main.Version != "" && info.Main.Version != "(devel)" {
			v.Version = info.Main.Version
		}
		for _, s := range info.Settings {
			if s.Key == "vcs.revision" {
				v.Commit = s.Value
			}
		}
	}
	if v.Version == "" {
		v.Version = "devel"
	}
	return v
}

func (a *app) printVersion() error {
	v := version()
	text := "belljar " + v.Version
	if v.Commit != "" {
		text += " (" + v.Commit[:min(12, len(v.Commit))] + ")"
	}
	_, err := fmt.Fprintf(a.out, "%s, %s, %s\n", text, v.Go, v.Platform)
	return err
}

func (a *app) versionCommand() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Print the version",
		Args:  noArgs,
		RunE: func(*cobra.Command, []string) error {
			if asJSON {
				return a.printJSON(version())
			}
			return a.printVersion()
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object")
	return cmd
}
