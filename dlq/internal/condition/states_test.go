package condition_test

import (
	"testing"

	"github.com/caisson-go/caisson/dlq"
	"github.com/caisson-go/caisson/dlq/internal/condition"
)

func TestStates(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		states, only []dlq.State
		want         string
	}{
		{nil, nil, "d.state = 'dead'"},
		{[]dlq.State{dlq.Held, dlq.Dead}, nil, "d.state IN ('held', 'dead')"},
		{[]dlq.State{dlq.Held, dlq.Replayed}, []dlq.State{dlq.Dead, dlq.Held}, "d.state = 'held'"},
		{[]dlq.State{dlq.Replayed}, []dlq.State{dlq.Dead}, "false"},
	} {
		if got := condition.States(dlq.Filter{States: tt.states}, tt.only); got != tt.want {
			t.Errorf("%v of %v: %s, want %s", tt.only, tt.states, got, tt.want)
		}
	}
}
