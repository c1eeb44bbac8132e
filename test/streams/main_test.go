//go:build streams

package streams

import (
	"testing"

	"go.uber.org/goleak"
)

// Whoever died, no goroutine may be left when the last proxy has been closed.
func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }
