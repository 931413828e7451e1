package worker_test

import (
	"log/slog"
	"strings"
	"testing"

	"github.com/caisson-go/caisson/worker"
)

// What an operator has asked for is no warning, however many jobs it holds; what a breaker does is one.
func TestHoldLevels(t *testing.T) {
	t.Parallel()
	for reason, level := range map[string]string{
		"forced_open": "INFO", worker.ReasonSnoozed: "INFO", "breaker_open": "WARN", "shared_open": "WARN", "": "WARN",
	} {
		var log strings.Builder
		worker.NewLogObserver(slog.New(slog.NewTextHandler(&log, nil))).Observe(&worker.Settled{Outcome: worker.OutcomeDeferred, Settlement: worker.SettlementHold, Reason: reason})
		if !strings.Contains(log.String(), "level="+level+" msg=\"job settled\"") {
			t.Errorf("held for %q: want %s\n%s", reason, level, log.String())
		}
	}
}
