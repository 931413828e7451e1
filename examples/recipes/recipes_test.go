package recipes

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/caisson-go/caisson/pools"
	"github.com/caisson-go/caisson/pools/limiter"
	"github.com/caisson-go/caisson/worker"
	"github.com/caisson-go/caisson/worker/jobtest"
)

// answers is a transport without a network, which virtual time needs.
type answers func(*http.Request) int

func (a answers) RoundTrip(r *http.Request) (*http.Response, error) {
	rec := httptest.NewRecorder()
	rec.WriteHeader(a(r))
	return rec.Result(), nil
}

// 30 jobs under a limit of 10 a second take more than 2 s, and each is tried once.
func TestRateLimit(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		geocoder := &Geocoder{Client: &http.Client{Transport: answers(func(*http.Request) int { return http.StatusOK })}, URL: "https://geo.example.com/"}
		registry := worker.NewRegistry()
		worker.Handle(registry, Geocode, geocoder.Handle)
		worker.Handle(registry, GeocodeFairly, geocoder.Handle)
		limits := pools.DestinationsConfig{ByName: map[string]pools.DestinationConfig{"geocoder": {Rate: limiter.Config{Rate: new(10.0), Burst: 5}}}}
		bench := jobtest.New(t, registry, jobtest.Config{Worker: worker.Config{Destinations: limits}})
		start := time.Now()
		var ids []string
		for i := range 30 {
			ids = append(ids, bench.Enqueue(Geocode.New(Address{Text: fmt.Sprint("house ", i)})))
		}
		bench.Drain()
		var last time.Time
		for _, id := range ids {
			times := bench.AttemptTimes(id)
			if len(times) != 1 {
				t.Fatalf("%d attempts: %s", len(times), bench.Where(id))
			}
			if times[0].After(last) {
				last = times[0]
			}
		}
		if took := last.Sub(start); took < 2400*time.Millisecond {
			t.Errorf("30 calls, 5 of them at once and 10 a second, took %s", took)
		}
	})
}

// A 429 fails the attempt, and the next one comes not before the time that was asked for.
func TestThrottled(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		status := http.StatusTooManyRequests
		geocoder := &Geocoder{Client: &http.Client{Transport: answers(func(*http.Request) int { return status })}, URL: "https://geo.example.com/"}
		registry := worker.NewRegistry()
		worker.Handle(registry, Geocode, geocoder.Handle)
		bench := jobtest.New(t, registry, jobtest.Config{})
		id := bench.Enqueue(Geocode.New(Address{Text: "a house"}))
		bench.Work()
		status = http.StatusOK
		bench.Drain()
		if times := bench.AttemptTimes(id); len(times) != 2 || times[1].Sub(times[0]) < time.Minute {
			t.Errorf("attempts at %v: %s", times, bench.Where(id))
		}
	})
}

// Clicks within an hour make one digest, a click in the next hour another.
func TestUniqueWindow(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		sent := 0
		registry := worker.NewRegistry()
		worker.Handle(registry, SendDigest, func(context.Context, Digest) error { sent++; return nil })
		bench := jobtest.New(t, registry, jobtest.Config{})
		noon := time.Date(2026, 12, 1, 12, 0, 0, 0, time.UTC)
		for _, at := range []time.Duration{0, time.Minute, 59 * time.Minute, time.Hour} {
			if err := RequestDigest(t.Context(), bench.Client(), "ada", noon.Add(at)); err != nil {
				t.Fatal(err)
			}
		}
		bench.Drain()
		if sent != 2 || len(bench.Dead()) > 0 {
			t.Errorf("%d digests, want 2; dead: %v", sent, bench.Dead())
		}
	})
}

// The second step runs once, although the first one's worker dies after it has enqueued it.
func TestChain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var bench *jobtest.Bench
		crash := true
		shipped := 0
		registry := worker.NewRegistry()
		charge := func(ctx context.Context, o Order) error {
			step := ChargeThenShip(bench.Client(), func(context.Context, Order) error { return nil })
			if err := step(ctx, o); err != nil || !crash {
				return err
			}
			crash = false
			<-ctx.Done() // killed before it could answer
			return ctx.Err()
		}
		worker.Handle(registry, Charge, charge)
		worker.Handle(registry, Ship, func(context.Context, Order) error { shipped++; return nil })
		bench = jobtest.New(t, registry, jobtest.Config{})
		bench.Enqueue(Charge.New(Order{ID: "o-1"}))
		bench.Advance(time.Second)
		bench.Kill()
		bench.Drain()
		if n := len(bench.Enqueued(Ship.Name)); n != 2 {
			t.Errorf("shipping was enqueued %d times, want 2: the crash was to come after the first", n)
		}
		if shipped != 1 {
			t.Errorf("shipped %d times", shipped)
		}
	})
}

// A stop in the middle of a long job spends no attempt, and no row is imported twice.
func TestLongJob(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		done := 0
		var rows []int
		importer := &Importer{
			Done:    func(context.Context, string) (int, error) { return done, nil },
			SetDone: func(_ context.Context, _ string, row int) error { done = row; return nil },
			Row: func(ctx context.Context, _ string, row int) error {
				select {
				case <-ctx.Done():
					return ctx.Err()
				case <-time.After(time.Minute):
					rows = append(rows, row)
					return nil
				}
			},
		}
		registry := worker.NewRegistry()
		worker.Handle(registry, ImportFile, importer.Handle)
		bench := jobtest.New(t, registry, jobtest.Config{})
		id := bench.Enqueue(ImportFile.New(File{Name: "people.csv", Rows: 120}))
		bench.Advance(time.Hour + time.Second)
		bench.Restart()
		bench.Drain()
		want := make([]int, 120)
		for i := range want {
			want[i] = i
		}
		if !slices.Equal(rows, want) {
			t.Errorf("%d rows: %v", len(rows), rows)
		}
		if list := bench.Settlements(id); len(list) != 2 || list[1].Job.Attempt != 1 {
			t.Errorf("%d settlements, want one of the stop and one of attempt 1: %s", len(list), bench.Where(id))
		}
	})
}

// A reminder comes after a day, waits for the morning at no attempt, and not at all for a cart that was paid.
func TestDelay(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		mails := map[string]time.Duration{}
		reminder := &Reminder{
			Paid:   func(_ context.Context, cart string) (bool, error) { return cart == "paid", nil },
			Asleep: func(now time.Time) bool { return now.Sub(start) < 30*time.Hour },
			Mail:   func(_ context.Context, cart string) error { mails[cart] = time.Since(start); return nil },
		}
		registry := worker.NewRegistry()
		worker.Handle(registry, Remind, reminder.Handle)
		bench := jobtest.New(t, registry, jobtest.Config{MaxWait: 80 * time.Hour})
		for _, cart := range []string{"open", "paid"} {
			if err := RemindTomorrow(t.Context(), bench.Client(), cart); err != nil {
				t.Fatal(err)
			}
		}
		bench.Drain()
		if at, ok := mails["open"]; !ok || at < 30*time.Hour || len(mails) != 1 || len(bench.Dead()) > 0 {
			t.Errorf("mails %v, dead %v", mails, bench.Dead())
		}
	})
}

// Jobs of the old name and of the old payload are worked after the deploy.
func TestDeploy(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var got []string
		registry := worker.NewRegistry()
		worker.Handle(registry, SendLetter, func(_ context.Context, l Letter) error { got = append(got, l.To...); return nil })
		worker.Handle(registry, SendLetterV1, func(_ context.Context, l LetterV1) error { got = append(got, l.To); return nil })
		bench := jobtest.New(t, registry, jobtest.Config{})
		bench.Enqueue(worker.NewJob{Kind: "mail.send", Payload: LetterV1{To: "ada"}})
		bench.Enqueue(SendLetter.New(Letter{To: []string{"grace", "joan"}}))
		bench.Drain()
		slices.Sort(got)
		if strings.Join(got, " ") != "ada grace joan" || len(bench.Dead()) > 0 {
			t.Errorf("got %v, dead %v", got, bench.Dead())
		}
	})
}
