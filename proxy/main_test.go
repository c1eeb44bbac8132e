package proxy

import (
	"testing"

	"go.uber.org/goleak"
)

// Proxy.Close joins every goroutine: none is left when the tests are over.
func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }
