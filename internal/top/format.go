package top

import (
	"fmt"
	"time"
)

// count writes a number of things in three digits or few more.
func count(v float64) string {
	switch {
	case v >= 1e6:
		return fmt.Sprintf("%.2fM", v/1e6)
	case v >= 1e4:
		return fmt.Sprintf("%.1fk", v/1e3)
	case v >= 100 || v == float64(int64(v)):
		return fmt.Sprintf("%.0f", v)
	}
	return fmt.Sprintf("%.1f", v)
}

// rate writes how many there are in a second.
func rate(v float64) string { return count(v) + "/s" }

// size writes an amount of bytes.
func size(v float64) string {
	switch {
	case v >= 1<<30:
		return fmt.Sprintf("%.2f GiB", v/(1<<30))
	case v >= 1<<20:
		return fmt.Sprintf("%.1f MiB", v/(1<<20))
	case v >= 1<<10:
		return fmt.Sprintf("%.1f KiB", v/(1<<10))
	}
	return fmt.Sprintf("%.0f B", v)
}

// span writes a time of seconds, as short as it is mostly.
func span(seconds float64) string {
	switch {
	case seconds >= 10:
		return time.Duration(seconds * float64(time.Second)).Round(time.Second).String()
	case seconds >= 1:
		return fmt.Sprintf("%.2f s", seconds)
	case seconds >= 1e-3:
		return fmt.Sprintf("%.1f ms", seconds*1e3)
	}
	return fmt.Sprintf("%.0f us", seconds*1e6)
}
