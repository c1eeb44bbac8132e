package load

import "testing"

// A crowd stays connected between its rounds.
func TestCrowd(t *testing.T) {
	addr, accepted := server(t, answerSets)
	c, err := Gather(addr, 20)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	watched := 0
	for _, pipeline := range []int{1, 50} {
		if err := c.Round(pipeline, Set(Value(100)), func() { watched++ }); err != nil {
			t.Fatal(err)
		}
	}
	if accepted.Load() != 20 || watched == 0 {
		t.Errorf("%d connections, watched %d times", accepted.Load(), watched)
	}
}
