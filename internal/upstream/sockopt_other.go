//go:build !linux

package upstream

import (
	"net"
	"time"
)

// setUserTimeout does nothing where the option does not exist; keep-alive still
// finds an idle dead path.
func setUserTimeout(*net.TCPConn, time.Duration) error { return nil }
