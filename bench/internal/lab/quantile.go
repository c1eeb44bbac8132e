package lab

import (
	"cmp"
	"math"
	"slices"
	"strconv"
	"strings"
)

// TopQuantile returns the q-quantile of the largest top observations of a histogram, by linear
// interpolation within a bucket as Prometheus does it, and false if there were none. It answers
// "how long did those wait that waited at all" of a histogram that also counts those that did not.
func (m Metrics) TopQuantile(histogram string, top, q float64) (float64, bool) {
	buckets := m.buckets(histogram)
	if len(buckets) == 0 || top <= 0 {
		return 0, false
	}
	total := buckets[len(buckets)-1].count
	top = min(top, total)
	if top == 0 {
		return 0, false
	}
	rank := total - top*(1-q)
	var below bucket // the one before, whose bound is where this one begins
	for _, b := range buckets {
		if b.count >= rank {
			if math.IsInf(b.bound, 1) {
				return below.bound, true
			}
			return below.bound + (b.bound-below.bound)*(rank-below.count)/(b.count-below.count), true
		}
		below = b
	}
	return below.bound, true
}

// bucket is the number of observations up to a bound.
type bucket struct{ bound, count float64 }

func (m Metrics) buckets(histogram string) []bucket {
	var found []bucket
	for series, count := range m {
		bound, ok := strings.CutPrefix(series, histogram+`_bucket{le="`)
		if !ok {
			continue
		}
		value, err := strconv.ParseFloat(strings.TrimSuffix(bound, `"}`), 64)
		if err != nil {
			continue // a series with more labels is not one of this histogram's own
		}
		found = append(found, bucket{value, count})
	}
	slices.SortFunc(found, func(a, b bucket) int { return cmp.Compare(a.bound, b.bound) })
	return found
}
