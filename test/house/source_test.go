package house

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// source is one Go file of this module.
type source struct {
	path   string // from the module's root, with slashes
	folder string
	test   bool
	lines  int
	syntax *ast.File
}

// imports lists the import paths of the file.
func (s *source) imports() []string {
	var paths []string
	for _, spec := range s.syntax.Imports {
		path, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			continue // the parser has accepted it
		}
		paths = append(paths, path)
	}
	return paths
}

// sources parses every Go file of the module, whatever its build tags: a floor holds on every
// system.
func sources(t *testing.T) []*source {
	t.Helper()
	root := filepath.Join("..", "..")
	var all []*source
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := entry.Name()
		if entry.IsDir() {
			hidden := strings.HasPrefix(name, ".") && name != ".."
			if hidden || name == "testdata" || name == "node_modules" || name == "bin" || name == "dist" {
				return fs.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(name, ".go") {
			return nil
		}
		s, err := parse(root, path)
		all = append(all, s)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func parse(root, path string) (*source, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	rel, err := filepath.Rel(root, path)
	if err != nil {
		return nil, err
	}
	syntax, err := parser.ParseFile(token.NewFileSet(), rel, text, parser.ParseComments)
	if err != nil {
		return nil, err
	}
	return &source{
		path:   filepath.ToSlash(rel),
		folder: filepath.ToSlash(filepath.Dir(rel)),
		test:   strings.HasSuffix(rel, "_test.go"),
		lines:  strings.Count(string(text), "\n"),
		syntax: syntax,
	}, nil
}
