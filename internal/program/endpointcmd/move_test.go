package endpointcmd_test

import (
	"testing"

	"github.com/caisson-go/caisson/internal/program/cli"
)

// An endpoint takes no credential to another host unless it is given again.
func TestEditMovesNoCredentials(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.run("endpoints", "add", "shop", url, "--header", "X-Api-Key=k-98765").ok()
	r.run("endpoints", "edit", "shop", "--url", "https://new.example.com/").fails(cli.Usage, "in the same change: header X-Api-Key")
	r.run("endpoints", "edit", "shop", "--url", "https://new.example.com/", "--header", "X-Api-Key=k-2").ok()
	r.run("endpoints", "edit", "shop", "--url", "https://newer.example.com/", "--header", "X-Api-Key").ok()
	r.run("endpoints", "edit", "shop", "--tenant", "other").fails(cli.Failure, "delete the endpoint and add it again")
}
