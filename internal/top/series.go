package top

import (
	"slices"
	"strconv"
	"strings"
)

// prefix begins the names of the proxy's own metrics.
const prefix = "streamproxy_"

// series is the numbers of /metrics: by name without prefix, then by labels as they are
// written.
type series map[string]map[string]float64

// processStart is when the process began, the one number that is not the proxy's own.
const processStart = "process_start_time_seconds"

// parseSeries reads the Prometheus text format. Lines that are not the proxy's own, or
// that it does not understand, are left out.
func parseSeries(page []byte) series {
	all := series{}
	for line := range strings.Lines(string(page)) {
		line, ours := strings.CutPrefix(strings.TrimSpace(line), prefix)
		ours = ours || strings.HasPrefix(line, processStart)
		at := strings.LastIndexByte(line, ' ')
		if !ours || at < 0 {
			continue
		}
		v, err := strconv.ParseFloat(line[at+1:], 64)
		if err != nil {
			continue
		}
		name, labels, _ := strings.Cut(line[:at], "{")
		if all[name] == nil {
			all[name] = map[string]float64{}
		}
		all[name][strings.TrimSuffix(labels, "}")] = v
	}
	return all
}

// sum adds up what a name has with whatever labels.
func (s series) sum(name string) float64 {
	total := 0.0
	for _, v := range s[name] {
		total += v
	}
	return total
}

// at is the number with exactly one label.
func (s series) at(name, label, value string) float64 { return s[name][label+`="`+value+`"`] }

// values lists the values of the single label of a name, in order.
func (s series) values(name string) []string {
	var list []string
	for labels := range s[name] {
		if _, quoted, one := strings.Cut(labels, "="); one {
			if value, err := strconv.Unquote(quoted); err == nil {
				list = append(list, value)
			}
		}
	}
	slices.Sort(list)
	return list
}

// since is what the counters of s have grown by. A proxy that began anew in between has
// counted from 0.
func (s series) since(before series) series {
	grown := series{}
	for name, numbers := range s {
		grown[name] = map[string]float64{}
		for labels, v := range numbers {
			if was := before[name][labels]; was <= v {
				v -= was
			}
			grown[name][labels] = v
		}
	}
	return grown
}

// mean is the average of what a histogram has seen; false if that is nothing.
func (s series) mean(histogram string) (float64, bool) {
	n := s.sum(histogram + "_count")
	return s.sum(histogram+"_sum") / max(n, 1), n > 0
}

// quantile estimates one from a histogram's buckets, as evenly filled; false if it has
// seen nothing. What is above the last bound counts as the last bound.
func (s series) quantile(histogram string, q float64) (float64, bool) {
	type bucket struct{ bound, upTo float64 }
	var buckets []bucket
	for labels, n := range s[histogram+"_bucket"] {
		text, _ := strings.CutPrefix(labels, `le="`)
		if bound, err := strconv.ParseFloat(strings.TrimSuffix(text, `"`), 64); err == nil {
			buckets = append(buckets, bucket{bound, n})
		}
	}
	slices.SortFunc(buckets, func(a, b bucket) int {
		if a.bound < b.bound {
			return -1
		}
		return 1
	})
	if len(buckets) < 2 || buckets[len(buckets)-1].upTo == 0 {
		return 0, false
	}
	rank := q * buckets[len(buckets)-1].upTo
	low := bucket{}
	for _, b := range buckets[:len(buckets)-1] { // the last is without bound
		if b.upTo >= rank && b.upTo > low.upTo {
			return low.bound + (b.bound-low.bound)*(rank-low.upTo)/(b.upTo-low.upTo), true
		}
		low = b
	}
	return low.bound, true
}
