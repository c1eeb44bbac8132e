package proxy

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
)

// Whose turn comes: by rank, then by arrival. Who gives up is passed over.
func TestTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := &turns{free: 1}
		if waited, err := q.take(t.Context(), rankFirst); waited || err != nil {
			t.Fatalf("a free turn: %v, %v", waited, err)
		}
		impatient, giveUp := context.WithCancel(t.Context())
		var got []string
		wait := func(ctx context.Context, r rank, who string) {
			go func() {
				if waited, err := q.take(ctx, r); err == nil && waited {
					got = append(got, who)
					q.give()
				} else if !errors.Is(err, context.Canceled) || !waited {
					t.Errorf("%s: %v, %v", who, waited, err)
				}
			}()
			synctest.Wait()
		}
		wait(t.Context(), rankRepeated, "guesser")
		wait(t.Context(), rankFirst, "first")
		wait(impatient, rankFirst, "impatient")
		wait(t.Context(), rankFirst, "second")
		wait(t.Context(), rankKnown, "known")
		giveUp()
		synctest.Wait()
		q.give()
		synctest.Wait()
		if want := []string{"known", "first", "second", "guesser"}; !slices.Equal(got, want) {
			t.Errorf("%v, want %v", got, want)
		}
		if q.taken(1) != 0 {
			t.Error("a turn is lost")
		}
	})
}

// A turn that comes in the moment in which its taker gives up is the next one's.
func TestTurnsGivenUpTooLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for range 100 {
			q := &turns{free: 0}
			ctx, cancel := context.WithCancel(t.Context())
			go func() {
				if _, err := q.take(ctx, rankFirst); err == nil {
					q.give()
				}
			}()
			synctest.Wait()
			go cancel()
			go q.give()
			synctest.Wait()
			if q.taken(1) != 0 {
				t.Fatal("the turn is lost")
			}
		}
	})
}
