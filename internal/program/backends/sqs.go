package backends

import (
	"context"
	"log/slog"

	"github.com/caisson-go/caisson/internal/program/config"
	"github.com/caisson-go/caisson/queue/sqs"
)

func openSQS(ctx context.Context, cfg *config.Config, mode Mode, logger *slog.Logger) (*Set, error) {
	c := sqsConfig(cfg)
	c.Logger = logger
	broker, err := sqs.Open(ctx, c)
	if err != nil {
		return nil, err
	}
	return beside(ctx, cfg, mode, broker, logger)
}

func offlineSQS(ctx context.Context, cfg *config.Config) (*Set, error) {
	c := sqsConfig(cfg)
	return offline(ctx, cfg, c.Capabilities)
}

// sqsConfig translates the section.
func sqsConfig(cfg *config.Config) sqs.Config {
	c := cfg.SQS
	out := sqs.Config{
		Region: c.Region, Endpoint: c.Endpoint, Prefix: c.Prefix, AccountID: c.AccountID, NoCreate: !c.Create,
		MaxReceiveCount: c.MaxReceiveCount, FIFOBatch: c.FIFOBatch, NoFairGroups: !c.FairGroups, Linger: new(c.Linger),
	}
	for _, q := range cfg.Queues {
		if q.UnwrapSNS {
			out.UnwrapSNS = append(out.UnwrapSNS, q.Name)
		}
	}
	return out
}
