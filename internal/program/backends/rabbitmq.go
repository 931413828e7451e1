package backends

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"log/slog"
	"os"

	"github.com/caisson-go/caisson/internal/program/config"
	"github.com/caisson-go/caisson/queue/rabbitmq"
)

func openRabbitMQ(ctx context.Context, cfg *config.Config, mode Mode, logger *slog.Logger) (*Set, error) {
	c, err := rabbitMQConfig(cfg.RabbitMQ)
	if err != nil {
		return nil, err
	}
	c.Logger = logger
	broker, err := rabbitmq.Open(ctx, c)
	if err != nil {
		return nil, err
	}
	return beside(ctx, cfg, mode, broker, logger)
}

func offlineRabbitMQ(ctx context.Context, cfg *config.Config) (*Set, error) {
	c, err := rabbitMQConfig(cfg.RabbitMQ)
	if err != nil {
		return nil, err
	}
	return offline(ctx, cfg, c.Capabilities)
}

// rabbitMQConfig translates the section.
func rabbitMQConfig(c config.RabbitMQ) (rabbitmq.Config, error) {
	out := rabbitmq.Config{
		Name: c.Name, Prefix: c.Prefix, Heartbeat: c.Heartbeat, ConsumerTimeout: new(c.ConsumerTimeout), MaxBody: c.MaxBody,
		DeliveryLimit: c.DeliveryLimit, Window: c.Window, Management: c.Management.Reveal(),
	}
	for _, u := range c.URLs {
		out.URLs = append(out.URLs, u.Reveal())
	}
	if c.TLS == (config.TLS{}) {
		return out, nil
	}
	var err error
	out.TLS, err = tlsConfig(c.TLS)
	return out, err
}

func tlsConfig(c config.TLS) (*tls.Config, error) {
	out := &tls.Config{ServerName: c.ServerName, MinVersion: tls.VersionTLS12}
	if c.CAFile != "" {
		data, err := os.ReadFile(c.CAFile)
		if err != nil {
			return nil, fmt.Errorf("rabbitmq.tls.ca_file: %w", err)
		}
		out.RootCAs = x509.NewCertPool()
		if !out.RootCAs.AppendCertsFromPEM(data) {
			return nil, fmt.Errorf("rabbitmq.tls.ca_file: %s holds no certificate: it must be PEM", c.CAFile)
		}
	}
	if c.CertFile != "" {
		pair, err := tls.LoadX509KeyPair(c.CertFile, c.KeyFile)
		if err != nil {
			return nil, fmt.Errorf("rabbitmq.tls.cert_file and key_file: %w", err)
		}
		out.Certificates = []tls.Certificate{pair}
	}
	return out, nil
}
