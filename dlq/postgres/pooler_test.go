package postgres_test

import (
	"testing"

	"github.com/caisson-go/caisson/internal/storage/pgdb"
	"github.com/caisson-go/caisson/internal/testkit/testserver"
)

// TestConformancePgBouncer has no session of its own: hardly two transactions run in the same one.
func TestConformancePgBouncer(t *testing.T) {
	t.Parallel()
	conformance(t, pgdb.Config{URL: testserver.PgBouncer(t, testserver.Postgres(t)), Pooler: true})
}
