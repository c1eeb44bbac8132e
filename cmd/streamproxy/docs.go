package main

import (
	"bytes"
	"context"
	"flag"
	"os"
	"path/filepath"

	"streamproxy/internal/config"
	"streamproxy/internal/telemetry"
)

// docs is the generated pages by file name. They depend on the program alone.
func docs() map[string][]byte {
	var flags, metrics bytes.Buffer
	config.WriteMarkdown(&flags)
	telemetry.WriteMarkdown(&metrics, labels())
	return map[string][]byte{"flags.md": flags.Bytes(), "metrics.md": metrics.Bytes()}
}

// docsOptions is what the command docs can be told.
type docsOptions struct{ dir string }

func (o *docsOptions) flags() *flag.FlagSet {
	set := flag.NewFlagSet("docs", flag.ContinueOnError)
	set.StringVar(&o.dir, "out", "", "the `DIR` to write to")
	return set
}

// writeDocs is the command that writes the generated pages.
func writeDocs(_ context.Context, args []string, _ process) error {
	var o docsOptions
	if err := parseOwn(o.flags(), args); err != nil {
		return err
	}
	if o.dir == "" {
		return config.Faults{{Name: "--out", Problem: "needs a value: the directory to write to"}}
	}
	for name, text := range docs() {
		if err := os.WriteFile(filepath.Join(o.dir, name), text, 0o644); err != nil {
			return err
		}
	}
	return nil
}
