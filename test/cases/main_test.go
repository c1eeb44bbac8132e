//go:build cases

package cases

import (
	"testing"

	"go.uber.org/goleak"
)

// Whatever broke, no goroutine may be left when the last proxy has been closed.
func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }
