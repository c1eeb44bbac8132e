package house

import (
	"go/ast"
	"slices"
	"strings"
	"testing"
)

// maxLines is where a file has long had more than one noun.
const maxLines = 500

func TestFilesStayShort(t *testing.T) {
	for _, s := range sources(t) {
		if !s.test && s.lines > maxLines {
			t.Errorf("%s has %d lines, more than %d: split it by noun", s.path, s.lines, maxLines)
		}
	}
}

func TestEveryPackageSaysWhatItIs(t *testing.T) {
	documented := map[string]bool{}
	for _, s := range sources(t) {
		if !s.test {
			documented[s.folder] = documented[s.folder] || s.syntax.Doc != nil
		}
	}
	for folder, ok := range documented {
		if !ok {
			t.Errorf("package %s has no comment that begins with \"Package\" or \"Command\"", folder)
		}
	}
}

// TestFilesHaveTests only reports: a file of types or of wiring may be tested through another.
func TestFilesHaveTests(t *testing.T) {
	paths := map[string]bool{}
	for _, s := range sources(t) {
		paths[s.path] = true
	}
	var bare []string
	for _, s := range sources(t) {
		if !s.test && hasLogic(s.syntax) && !paths[strings.TrimSuffix(s.path, ".go")+"_test.go"] {
			bare = append(bare, s.path)
		}
	}
	slices.Sort(bare)
	t.Logf("%d files with functions have no test file of their own:\n  %s", len(bare), strings.Join(bare, "\n  "))
}

// hasLogic reports whether a file declares a function that is worth a test.
func hasLogic(file *ast.File) bool {
	return slices.ContainsFunc(file.Decls, func(d ast.Decl) bool {
		f, ok := d.(*ast.FuncDecl)
		return ok && f.Body != nil && len(f.Body.List) > 1
	})
}

// TestNothingIsLeftForLater refuses the marks of unfinished work.
func TestNothingIsLeftForLater(t *testing.T) {
	marks := []string{"TO" + "DO", "FIX" + "ME", "XX" + "X:"}
	for _, s := range sources(t) {
		for _, group := range s.syntax.Comments {
			for _, mark := range marks {
				if strings.Contains(group.Text(), mark) {
					t.Errorf("%s: a comment says %s; finish it or say why it is not needed", s.path, mark)
				}
			}
		}
	}
}

// TestSleepsAreReported lists calls of time.Sleep in tests outside a synctest bubble: a test that
// waits for a guess is slow on a fast machine and fails on a slow one. A short pause in a loop
// that polls until a deadline is neither, so this only reports.
func TestSleepsAreReported(t *testing.T) {
	for _, s := range sources(t) {
		if !s.test || slices.Contains(s.imports(), "testing/synctest") {
			continue
		}
		ast.Inspect(s.syntax, func(n ast.Node) bool {
			call, ok := n.(*ast.SelectorExpr)
			if !ok || call.Sel.Name != "Sleep" {
				return true
			}
			if id, ok := call.X.(*ast.Ident); ok && id.Name == "time" {
				t.Logf("%s calls time.Sleep: wait for the event itself, or use testing/synctest", s.path)
			}
			return true
		})
	}
}
