package streamlab

import (
	"maps"
	"testing"
)

func TestCalls(t *testing.T) {
	calls, err := parseCalls("# Commandstats\r\ncmdstat_get:calls=5,usec=9,usec_per_call=1.8\r\n" +
		"cmdstat_client|setinfo:calls=2,usec=1\r\ncmdstat_info:calls=40,usec=1\r\n\r\n")
	if err != nil || !maps.Equal(calls, Calls{"get": 5, "client|setinfo": 2}) {
		t.Fatalf("%v, %v", calls, err)
	}
	grown := calls.since(Calls{"get": 3, "client|setinfo": 2})
	if !maps.Equal(grown, Calls{"get": 2}) {
		t.Errorf("grown %v", grown)
	}
	if n := calls.Total(); n != 7 {
		t.Errorf("total %d", n)
	}
	if n := calls.Total("get", "absent"); n != 2 {
		t.Errorf("without get %d", n)
	}
	if _, err := parseCalls("cmdstat_get:calls=many,usec=1"); err == nil {
		t.Error("a number that is none was taken")
	}
}
