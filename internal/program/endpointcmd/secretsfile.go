package endpointcmd

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/caisson-go/caisson/internal/program/cli"
	"github.com/caisson-go/caisson/internal/webhookapi"
)

// secretsFile takes the secrets that were made, one JSON object a line. The zero value takes none.
type secretsFile struct{ file *os.File }

// newSecretsFile makes a file that only its owner reads. It replaces none.
func newSecretsFile(path string) (secretsFile, error) {
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	switch {
	case errors.Is(err, fs.ErrExist):
		return secretsFile{}, cli.Refuse("--secrets-to %s: the file exists: name a new one", path)
	case err != nil:
		return secretsFile{}, cli.Refuse("--secrets-to: %w", err)
	}
	return secretsFile{file}, nil
}

func (f secretsFile) add(e webhookapi.NewEndpoint) error {
	if f.file == nil {
		return nil
	}
	if err := cli.JSON(f.file, map[string]string{"id": e.ID, "secret": e.Secret}); err != nil {
		return fmt.Errorf("it was added, and its secret not kept: %w: rotate it to have another one", err)
	}
	return nil
}

// close makes sure that the secrets are on the disk.
func (f secretsFile) close() error {
	if f.file == nil {
		return nil
	}
	if err := errors.Join(f.file.Sync(), f.file.Close()); err != nil {
		return fmt.Errorf("--secrets-to: %w", err)
	}
	return nil
}
