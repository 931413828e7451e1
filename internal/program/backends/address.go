package backends

import (
	"net/url"
	"strings"

	"github.com/caisson-go/caisson/internal/program/config"
	"github.com/caisson-go/caisson/internal/storage/pgdb"
)

// Address says where the broker is, without secrets: a file, hosts and ports, an endpoint, or a region.
func Address(cfg *config.Config) string {
	switch cfg.Broker {
	case config.BrokerRabbitMQ:
		var hosts []string
		for _, u := range cfg.RabbitMQ.URLs {
			if parsed, err := url.Parse(u.Reveal()); err == nil {
				hosts = append(hosts, parsed.Host) // without user and virtual host
			}
		}
		return strings.Join(hosts, ",")
	case config.BrokerSQS:
		if u, err := url.Parse(cfg.SQS.Endpoint); err == nil && u.Host != "" {
			return u.Host
		}
		if cfg.SQS.Region != "" {
			return cfg.SQS.Region
		}
		return "the SDK's own region"
	}
	return cfg.Embedded.Path
}

// StoreAddress says where the store beside the broker is, without secrets: a file, or hosts, ports and database. "" if there is none.
func StoreAddress(cfg *config.Config) string {
	switch cfg.ClaimStore() {
	case config.StorePostgres:
		return pgdb.Address(cfg.Postgres.URL.Reveal())
	case config.StoreSQLite:
		return cfg.SQLite.Path
	}
	return ""
}
