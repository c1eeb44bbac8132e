package main

import (
	"cmp"
	"context"
	"flag"
	"fmt"
	"runtime"
	"runtime/debug"

	"streamproxy/internal/telemetry"
)

// version is set by the linker in released builds (-X main.version=v1.2.3).
var version = ""

// build says which program this is, from the linker's word or what the Go command
// noted in the binary.
func build() telemetry.Build {
	b := telemetry.Build{Version: version, GoVersion: runtime.Version()}
	info, ok := debug.ReadBuildInfo()
	if ok {
		b.Version = cmp.Or(b.Version, info.Main.Version)
		for _, s := range info.Settings {
			if s.Key == "vcs.revision" {
				b.Revision = s.Value
			}
		}
	}
	b.Version = cmp.Or(b.Version, "(devel)")
	b.Revision = cmp.Or(b.Revision, "unknown")
	return b
}

// printVersion is the command version.
func printVersion(_ context.Context, args []string, p process) error {
	if err := parseOwn(flag.NewFlagSet("version", flag.ContinueOnError), args); err != nil {
		return err
	}
	b := build()
	_, err := fmt.Fprintf(p.stdout, "streamproxy %s (revision %s, %s, %s/%s)\n", b.Version, b.Revision, b.GoVersion, runtime.GOOS, runtime.GOARCH)
	return err
}
