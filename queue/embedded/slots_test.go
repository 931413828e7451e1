package embedded

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/caisson-go/caisson/internal/storage/sqlitefile"
	"github.com/caisson-go/caisson/queue"
)

// A receive whose slots are all reserved by another one waits for it; it does not spin while that one waits for the file.
func TestReceiveWithoutSlotsDoesNotSpin(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b, err := Open(t.Context(), Config{Path: ":memory:"})
		if err != nil {
			t.Fatal(err)
		}
		if err := b.CreateQueue(t.Context(), "q"); err != nil {
			t.Fatal(err)
		}
		s, err := b.Subscribe(t.Context(), "q", queue.SubscribeConfig{Slots: 1})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		holding, release, ended := make(chan struct{}), make(chan struct{}), make(chan error, 3)
		go func() {
			ended <- b.file.Write(ctx, false, func(*sqlitefile.Tx) error {
				close(holding)
				<-release
				return nil
			})
		}()
		<-holding
		first := true
		for range 2 {
			go func() {
				_, err := s.Receive(ctx, 1)
				ended <- err
			}()
			if first {
				synctest.Wait() // it has reserved the slot and waits for the writer
				first = false
			}
		}
		// Time passes only when nobody has anything to do.
		time.Sleep(time.Second)
		close(release)
		cancel()
		for range 3 {
			if err := <-ended; err != nil && !errors.Is(err, context.Canceled) {
				t.Error(err)
			}
		}
		if err := b.Close(); err != nil {
			t.Error(err)
		}
	})
}
