package replay_test

import (
	"testing"

	"github.com/caisson-go/caisson/dlq"
	"github.com/caisson-go/caisson/dlq/postgres"
	"github.com/caisson-go/caisson/internal/testkit/dlqtest"
	"github.com/caisson-go/caisson/internal/testkit/testserver"
)

// opener opens an empty store in a synctest bubble, whose time it shows.
type opener func(t testing.TB) dlq.Store

// onStores runs a test with dead letters in memory, and in PostgreSQL.
func onStores(t *testing.T, do func(t *testing.T, open opener)) {
	t.Helper()
	t.Run("memory", func(t *testing.T) { do(t, func(t testing.TB) dlq.Store { return dlqtest.OpenMemory(t) }) })
	t.Run("postgres", func(t *testing.T) {
		do(t, func(t testing.TB) dlq.Store {
			t.Helper()
			pool, schema := testserver.VirtualSchema(t)
			store, err := postgres.New(pool, postgres.Config{Schema: schema})
			if err != nil {
				t.Fatal(err)
			}
			return store
		})
	})
}
