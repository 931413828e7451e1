package testserver

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// pgbouncer is a pooler of the test's own.
type pgbouncer struct {
	daemon

	url *url.URL
}

// PgBouncer starts a PgBouncer in transaction mode in front of a PostgreSQL, ends it with the test, and returns its URL: upstream's with
// another host. It goes through its server connections in turn, so that one transaction of a client hardly ever runs where the last one did, and
// what was left in a session is missed at once. It refuses startup parameters that it does not know.
//
// It keeps its address while upstream is away.
func PgBouncer(t testing.TB, upstream string) string {
	t.Helper()
	u, err := url.Parse(upstream)
	if err != nil || u.Host == "" {
		t.Fatal("PgBouncer was given something else than a URL with a host") // which may hold a password
	}
	name, err := pgbouncerProgram(pgbouncerNames)
	if err != nil {
		t.Fatal(err)
	}
	b, err := newPgBouncer(t, u)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the log of PgBouncer ends with:\n%s", lastLines(b.log(context.WithoutCancel(t.Context())), 50))
		}
		ctx, cancel := context.WithTimeout(context.Background(), stopTimeout)
		defer cancel()
		// It has nothing to lose.
		if err := errors.Join(b.kill(ctx), os.RemoveAll(b.dir)); err != nil {
			t.Errorf("remove PgBouncer: %v", err)
		}
	})
	ctx, cancel := context.WithTimeout(t.Context(), startTimeout)
	defer cancel()
	cmd := exec.Command(name, filepath.Join(b.dir, "pgbouncer.ini")) //nolint:noctx // ended by the cleanup or the watchdog
	cmd.Env = environment()
	if err := b.begin(ctx, cmd); err != nil {
		t.Fatalf("start PgBouncer: %v", err)
	}
	if err := await(ctx, b, b); err != nil {
		t.Fatalf("PgBouncer does not answer: %v", err)
	}
	return b.url.String()
}

// pgbouncerNames has Debian's place, which is not in everybody's PATH.
var pgbouncerNames = []string{"pgbouncer", "/usr/sbin/pgbouncer"}

func pgbouncerProgram(names []string) (string, error) {
	for _, name := range names {
		if path, err := exec.LookPath(name); err == nil {
			return path, nil
		}
	}
	return "", errors.New("tests of the pooler start a PgBouncer of their own, but it is not installed " +
		"(run `make services` as root, or `apt-get install pgbouncer`)")
}

func newPgBouncer(t testing.TB, upstream *url.URL) (*pgbouncer, error) {
	t.Helper()
	account, err := serverAccount()
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "caisson-pgbouncer-")
	if err != nil {
		return nil, err
	}
	own := *upstream
	port := freePort(t)
	own.Host = loopback(port)
	b := &pgbouncer{daemon: daemon{dir: dir, user: account}, url: &own}
	user := cmp.Or(upstream.User.Username(), "postgres")
	password, _ := upstream.User.Password()
	config := fmt.Sprintf(`[databases]
* = host=%s port=%s

[pgbouncer]
listen_addr = 127.0.0.1
listen_port = %d
unix_socket_dir =
auth_type = trust
auth_file = users.txt
pool_mode = transaction
server_round_robin = 1
default_pool_size = 20
max_client_conn = 500
server_login_retry = 0.2
`, upstream.Hostname(), cmp.Or(upstream.Port(), "5432"), port)
	err = errors.Join(
		os.WriteFile(filepath.Join(dir, "pgbouncer.ini"), []byte(config), 0o600),
		os.WriteFile(filepath.Join(dir, "users.txt"), []byte(quoted(user)+" "+quoted(password)+"\n"), 0o600),
		account.own(dir),
	)
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	return b, nil
}

func quoted(text string) string { return `"` + strings.ReplaceAll(text, `"`, `""`) + `"` }

// answers says that the pooler is there; it lets a client in before it has met the server.
func (b *pgbouncer) answers(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, answerTimeout)
	defer cancel()
	return askPostgres(ctx, b.url)
}
