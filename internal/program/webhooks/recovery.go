package webhooks

import (
	"github.com/caisson-go/caisson/dlq/audit"
	"github.com/caisson-go/caisson/internal/program/backends"
	"github.com/caisson-go/caisson/webhook/journal"
	"github.com/caisson-go/caisson/worker"
)

// Recovery returns what sends events again, in the name of actor, with the dead letters and claims that the set has.
func (s *Settings) Recovery(open *backends.Set, client *worker.Client, actor string) (*journal.Recovery, error) {
	ordering, err := s.ordering(open, client, nil)
	if err != nil {
		return nil, err
	}
	c := journal.RecoveryConfig{Store: open.Journal, Client: client, Ordering: ordering, Actor: actor}
	if open.Letters != nil {
		c.DeadLetters, c.Broker = open.Letters, open.Broker
		c.Audit, _ = open.Letters.(audit.Log)
	}
	if open.Claims != nil {
		c.Claims = open.Claims
	}
	return journal.NewRecovery(c)
}
