package pause

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

func TestFor(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		if !For(t.Context(), time.Minute) || time.Since(began) != time.Minute {
			t.Errorf("waited %v", time.Since(began))
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if For(ctx, time.Minute) || time.Since(began) != time.Minute+time.Second {
			t.Errorf("ended %v after its context", time.Since(began)-time.Minute-time.Second)
		}
		if For(ctx, 0) {
			t.Error("a context that is done counts as alive")
		}
	})
}
