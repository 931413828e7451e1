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
		{[]dlq.State{dlq.StateHeld, dlq.StateDead}, nil, "d.state IN ('held', 'dead')"},
		{[]dlq.State{dlq.StateHeld, dlq.StateReplayed}, []dlq.State{dlq.StateDead, dlq.StateHeld}, "d.state = 'held'"},
		{[]dlq.State{dlq.StateReplayed}, []dlq.State{dlq.StateDead}, "false"},
	} {
		if got := condition.States(dlq.Filter{States: tt.states}, tt.only); got != tt.want {
			t.Errorf("%v of %v: %s, want %s", tt.only, tt.states, got, tt.want)
		}
	}
}
