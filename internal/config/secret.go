package config

import (
	"fmt"
	"strings"

	"streamproxy/internal/certs"
)

// maxSecret bounds what is read of a secret file, in bytes. Tokens of managed services
// have a few kilobytes.
const maxSecret = 64 << 10

// SecretFile returns a function that reads the secret in the file at path, at most
// 64 KiB, without the line ends that editors and shells leave behind it. An empty file
// is an error: as a password it would let everybody in. So is one that is not regular.
func SecretFile(path string) func() (string, error) {
	return func() (string, error) {
		b, err := certs.ReadFile(path, maxSecret)
		if err != nil {
			return "", err
		}
		s := strings.TrimRight(string(b), "\r\n")
		if s == "" {
			return "", fmt.Errorf("secret file %s is empty", path)
		}
		return s, nil
	}
}

func checkSecretFile(path string) error {
	if path == "" {
		return nil
	}
	if _, err := SecretFile(path)(); err != nil {
		return fmt.Errorf("cannot be used: %w", err)
	}
	return nil
}

// HideUserinfo replaces the password in a URL. It does not ask whether the URL is
// well formed: what stands before the last @ may be a password that broke it.
func HideUserinfo(raw string) string {
	start := 0
	if i := strings.Index(raw, "://"); i >= 0 {
		start = i + len("://")
	}
	at := strings.LastIndexByte(raw, '@')
	if at < start {
		return raw
	}
	user, _, secret := strings.Cut(raw[start:at], ":")
	if !secret {
		return raw
	}
	return raw[:start] + user + ":xxxxx" + raw[at:]
}
