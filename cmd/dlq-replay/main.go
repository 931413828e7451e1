package main

import (
	"context"
	"os"

	"github.com/caisson-go/caisson/internal/program/cli"
	"github.com/caisson-go/caisson/internal/program/dlqcmd"
)

func main() {
	cli.Main(func(ctx context.Context) cli.Code { return dlqcmd.Run(ctx, os.Args[1:], cli.System()) })
}
