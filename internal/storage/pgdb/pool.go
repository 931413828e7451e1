package pgdb

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

// Config says how to reach the database.
type Config struct {
	// URL is postgres://user:password@host:port/database, or a keyword/value string. Required. Several hosts are tried in order.
	URL string
	// Pooler says that URL leads to a pooler in transaction mode: statements are not prepared.
	Pooler bool
	// MaxConns is the most connections of the pool. Default 8.
	MaxConns int
	// ConnectTimeout bounds making a connection. Default 5 s.
	ConnectTimeout time.Duration
	// StatementTimeout ends a statement on the server. Default 30 s. Without effect with Pooler, where contexts bound calls.
	StatementTimeout time.Duration
	// Name is the application_name that the server shows. Default "caisson".
	Name string
}

// Open returns a pool. It does not connect yet. The caller closes it.
func Open(ctx context.Context, cfg Config) (*pgxpool.Pool, error) {
	pc, err := cfg.parse()
	if err != nil {
		return nil, err
	}
	pool, err := pgxpool.NewWithConfig(ctx, pc)
	if err != nil {
		return nil, fmt.Errorf("postgres: %w", err)
	}
	return pool, nil
}

// Check refuses what Open would refuse. It reads the files that the URL names, for example certificates, and connects to nothing.
func (c Config) Check() error {
	_, err := c.parse()
	return err
}

func (c Config) parse() (*pgxpool.Config, error) {
	pc, err := pgxpool.ParseConfig(c.URL)
	if err != nil {
		return nil, unreadable(err)
	}
	pc.MaxConns = int32(cmp.Or(c.MaxConns, 8)) //nolint:gosec // a number of connections
	pc.ConnConfig.ConnectTimeout = cmp.Or(c.ConnectTimeout, 5*time.Second)
	pc.ConnConfig.RuntimeParams["application_name"] = cmp.Or(c.Name, "caisson")
	pc.MaxConnLifetimeJitter = pc.MaxConnLifetime / 10
	usual := pc.ConnConfig.OnPgError
	pc.ConnConfig.OnPgError = func(conn *pgconn.PgConn, err *pgconn.PgError) bool {
		// A primary that became a standby keeps its connections, and only another one finds the new primary.
		return err.Code != readOnly && (usual == nil || usual(conn, err))
	}
	if c.Pooler {
		pc.ConnConfig.DefaultQueryExecMode = pgx.QueryExecModeExec
		pc.ConnConfig.StatementCacheCapacity, pc.ConnConfig.DescriptionCacheCapacity = 0, 0
	} else {
		ms := cmp.Or(c.StatementTimeout, 30*time.Second).Milliseconds()
		pc.ConnConfig.RuntimeParams["statement_timeout"] = strconv.FormatInt(ms, 10)
	}
	return pc, nil
}

// unreadable says what is wrong with a URL without quoting it: only the name of a file that is missing is passed on.
func unreadable(err error) error {
	var file *fs.PathError
	if errors.As(err, &file) {
		return fmt.Errorf("postgres: the URL names a file: %w", file)
	}
	return errors.New("postgres: the URL cannot be read: write postgres://user:password@host:5432/database, " +
		"with %40 for an @ in a password and the like")
}

// Address says which hosts and which database a URL leads to, without user and password.
func Address(url string) string {
	cc, err := pgx.ParseConfig(url)
	if err != nil {
		return "a URL that cannot be read"
	}
	hosts := []string{hostPort(cc.Host, cc.Port)}
	for _, f := range cc.Fallbacks { // there is one more for each host where TLS is tried first
		if h := hostPort(f.Host, f.Port); !slices.Contains(hosts, h) {
			hosts = append(hosts, h)
		}
	}
	return strings.Join(hosts, ",") + "/" + cc.Database
}

func hostPort(host string, port uint16) string {
	return net.JoinHostPort(host, strconv.Itoa(int(port)))
}
