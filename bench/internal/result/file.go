package result

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// Read reads <folder>/<name> into v, which stays as it is if there is no such file.
func Read(folder, name string, v any) error {
	path := filepath.Join(folder, name)
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if err := json.Unmarshal(text, v); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return nil
}

// Write writes v as <folder>/<name>, and makes the folder.
func Write(folder, name string, v any) (path string, err error) {
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return "", err
	}
	text, err := json.MarshalIndent(v, "", " ")
	if err != nil {
		return "", err
	}
	path = filepath.Join(folder, name)
	return path, os.WriteFile(path, append(text, '\n'), 0o644)
}
