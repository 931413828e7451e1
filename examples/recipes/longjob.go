package recipes

import (
	"context"
	"time"

	"github.com/caisson-go/caisson/worker"
)

// File has many rows to import.
type File struct {
	Name string `json:"name"`
	Rows int    `json:"rows"`
}

// ImportFile may take three hours.
var ImportFile = worker.Kind[File]{
	Name:   "file.import",
	Config: worker.KindConfig{Timeout: 3 * time.Hour, Bulkhead: 2},
}

// Importer knows how far it came: Done and SetDone read and write a row of your database.
type Importer struct {
	Done    func(ctx context.Context, file string) (int, error)
	SetDone func(ctx context.Context, file string, row int) error
	Row     func(ctx context.Context, file string, row int) error
}

// Handle goes on where the attempt before has stopped.
func (im *Importer) Handle(ctx context.Context, f File) error {
	row, err := im.Done(ctx, f.Name)
	if err != nil {
		return err
	}
	for ; row < f.Rows; row++ {
		if err := im.Row(ctx, f.Name, row); err != nil {
			return err // of a context that ended, too: the worker stops, or time is up
		}
		if err := im.SetDone(ctx, f.Name, row+1); err != nil {
			return err
		}
	}
	return nil
}
