// Command streamproxy is a sidecar that shares few Redis connections among many
// clients. Run it with --help.
package main

import (
	"context"
	"fmt"
	"os"
)

func main() {
	p := process{environ: os.Environ(), stdout: os.Stdout, stderr: os.Stderr}
	err := run(context.Background(), os.Args[1:], p)
	if err != nil {
		writeBriefly(os.Stderr, fmt.Sprintf("streamproxy: %v\n", err))
	}
	os.Exit(exitCode(err))
}
