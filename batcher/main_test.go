package batcher

import (
	"testing"

	"go.uber.org/goleak"
)

// Every goroutine of this package has an owner that joins it: none is left when the
// tests are over.
func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }
