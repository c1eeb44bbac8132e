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

// HideUserinfo replaces what may be a password in a URL, or in what has user and
// password before an @. It does not ask whether the text is well formed: what stands
// before the last @ may be a password that broke it.
func HideUserinfo(raw string) string {
	if strings.Contains(raw, "://") {
		return hideURL(raw, false)
	}
	at := strings.LastIndexByte(raw, '@')
	if user, _, secret := strings.Cut(raw[:max(at, 0)], ":"); secret {
		return user + ":" + hidden + raw[at:]
	}
	return raw
}

// hidden stands for what is not shown.
const hidden = "xxxxx"

// hideUpstream is what is shown of --upstream. Where a password is given elsewhere, a
// user alone is a user; else it may be a password, as redis-cli takes it.
func (c *Config) hideUpstream(raw string) string {
	if raw != "" && !strings.Contains(raw, "://") {
		return hidden
	}
	return hideURL(raw, c.UpstreamPasswordFile != "")
}

// hideURL hides the password; a user that stands alone, unless alone says that it is
// one; and what is no port, and what has no place in such a URL.
func hideURL(raw string, alone bool) string {
	scheme, rest, _ := strings.Cut(raw, "://")
	shown := scheme + "://"
	if at := strings.LastIndexByte(rest, '@'); at >= 0 {
		user, _, secret := strings.Cut(rest[:at], ":")
		switch {
		case secret && !strings.ContainsAny(user, "/?#"):
			shown += user + ":" + hidden
		case alone && !secret && !strings.ContainsAny(user, "/?#"):
			shown += user
		default:
			shown += hidden
		}
		shown, rest = shown+"@", rest[at+1:]
	}
	place, query, queried := cutAny(rest, "?#")
	host, path, pathed := strings.Cut(place, "/")
	if colon := strings.LastIndexByte(host, ':'); colon >= 0 && !strings.HasSuffix(host, "]") && strings.Trim(host[colon+1:], "0123456789") != "" {
		host = host[:colon+1] + hidden
	}
	shown += host
	if pathed {
		shown += "/" + path
	}
	if !queried {
		return shown
	}
	if db, ok := strings.CutPrefix(query, "?db="); ok && strings.Trim(db, "0123456789") == "" {
		return shown + query
	}
	return shown + query[:1] + hidden
}

// cutAny cuts before the first of some characters.
func cutAny(s, chars string) (before, after string, found bool) {
	if i := strings.IndexAny(s, chars); i >= 0 {
		return s[:i], s[i:], true
	}
	return s, "", false
}
