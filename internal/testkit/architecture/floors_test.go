package architecture

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func floorsHold(t *testing.T) {
	t.Helper()
	for _, v := range Violations(modulePackages(t)) {
		t.Error(v)
	}
}

// TestViolationsAreFound shows that the rules bite, on imports that nobody has written yet.
func TestViolationsAreFound(t *testing.T) {
	t.Parallel()
	const m = Module + "/"
	tests := []struct {
		name, pkg, imp string
		want           string // part of the complaint; "" if the import is fine
	}{
		{"standard library", "pools", "container/list", ""},
		{"x/time on floor 0", "pools", "golang.org/x/time/rate", ""},
		{"look-alike of x/time", "pools", "golang.org/x/timer", "floor 0 uses"},
		{"foreign module on floor 0", "queue", "github.com/google/uuid", "floor 0 uses"},
		{"sideways on floor 0", "pools", m + "schedule", "sideways"},
		{"upwards from floor 0", "queue", m + "worker", "upwards"},
		{"driver uses the port", "queue/embedded", m + "queue", ""},
		{"driver uses the engine", "queue/embedded", m + "internal/storage/sqlitefile", ""},
		{"port uses the engine", "queue", m + "internal/storage/sqlitefile", "upwards"},
		{"engine uses a driver", "internal/storage/sqlitefile", m + "queue/embedded", "upwards"},
		{"driver uses its driver library", "queue/embedded", "modernc.org/sqlite", ""},
		{"driver uses another driver", "queue/rabbitmq", m + "queue/embedded", "sideways"},
		{"store uses its port", "dlq/sqlite", m + "dlq", ""},
		{"replay uses its parent on the same floor", "dlq/replay", m + "dlq", ""},
		{"dead letters in the broker use replay", "dlq/brokerdlq", m + "dlq/replay", ""},
		{"replay uses a store", "dlq/replay", m + "dlq/sqlite", "upwards"},
		{"store uses what its parent's stores share", "dlq/sqlite", m + "dlq/internal/cursor", ""},
		{"store uses what others share", "internal/fleet/sqlite", m + "dlq/sqlite/internal/rows", "sideways"},
		{"store uses another store", "dlq/sqlite", m + "idempotency/sqlite", "sideways"},
		{"parent uses its subpackage", "dlq", m + "dlq/sqlite", "upwards"},
		{"own internal part", "pools", m + "pools/internal/ring", ""},
		{"a neighbour's internal part", "schedule", m + "pools/internal/ring", "sideways"},
		{"outbox is a driver", "queue/outbox", m + "queue", ""},
		{"worker uses ports", "worker", m + "dlq", ""},
		{"worker uses a driver", "worker", m + "queue/embedded", "knows no driver"},
		{"worker uses a store", "worker", m + "dlq/sqlite", "knows no driver"},
		{"worker uses SQL", "worker", "database/sql", "knows no SQL"},
		{"worker uses configuration", "worker", m + "internal/program/config", "upwards"},
		{"jobtest uses its parent and a driver", "worker/jobtest", m + "queue/embedded", ""},
		{"product uses test support", "queue/embedded", m + "queue/queuetest", "only tests"},
		{"product uses the fault lab", "internal/program/backends", m + "internal/testkit/faultlab", "only tests"},
		{"fault lab uses everything", "internal/testkit/faultlab", m + "queue/embedded", ""},
		{"test support uses test support", "worker/jobtest", m + "queue/queuetest", ""},
		{"product uses test servers", "cmd/worker", m + "internal/testkit/testserver", "only tests"},
		{"test servers use a driver library", "internal/testkit/testserver", "github.com/rabbitmq/amqp091-go", ""},
		{"webhook uses worker", "webhook", m + "worker", ""},
		{"webhook uses the app", "webhook", m + "app", "upwards"},
		{"app uses everything", "app", m + "internal/program/config", ""},
		{"command uses the app", "cmd/worker", m + "app", ""},
		{"nobody imports the rules", "cmd/worker", m + "internal/testkit/architecture", "only tests"},
		{"package without a floor", "helpers", "fmt", "has no floor"},
		{"import without a floor", "cmd/worker", m + "helpers", "has no floor"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got := Violations([]Package{{Path: tt.pkg, Imports: []string{tt.imp}}})
			if tt.want == "" {
				if diff := cmp.Diff([]string(nil), got); diff != "" {
					t.Fatalf("unexpected complaint (-want +got):\n%s", diff)
				}
				return
			}
			if len(got) != 1 || !strings.Contains(got[0], tt.want) {
				t.Fatalf("got %q, want one complaint with %q", got, tt.want)
			}
		})
	}
}
