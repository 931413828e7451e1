package webhook

import (
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/caisson-go/caisson/webhook/signature"
)

func verifierFor(t testing.TB, s signature.Secret) *signature.Verifier {
	t.Helper()
	key := s.VerifyKey()
	if key == "" {
		key = s.Reveal()
	}
	v, err := signature.NewVerifier(key)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// TestRotationWindow: a receiver that still has the old key goes on for as long as the window, to the second, and no longer; the new key works from the
// first delivery on. Both kinds of keys rotate.
func TestRotationWindow(t *testing.T) {
	t.Parallel()
	rec := newReceiver(t, status(http.StatusOK))
	public := mustSecret(t, "whsk_"+strings.Repeat("A", 42)+"E=")
	until := noon.Add(time.Hour)
	e := endpointAt("e", rec.URL)
	old, older := signature.NewSecret(), signature.NewSecret()
	e.Retiring = []RetiringSecret{{old, until}, {public, until}, {older, noon.Add(-time.Hour)}}
	now := noon
	s := newSender(t, Config{Now: func() time.Time { return now }})
	for i, c := range []struct {
		at       time.Time
		inWindow bool
	}{
		{noon, true},
		{until.Add(-time.Second), true},
		{until.Add(-time.Nanosecond), true},
		{until, false},
		{until.Add(time.Nanosecond), false},
		{until.Add(time.Hour), false},
	} {
		now = c.at
		if r := send(t, s, e); r.Status != http.StatusOK {
			t.Fatalf("%+v", r)
		}
		got := rec.requests()[i]
		for name, want := range map[*signature.Verifier]bool{
			verifierFor(t, e.Secrets[0]): true, verifierFor(t, old): c.inWindow, verifierFor(t, public): c.inWindow, verifierFor(t, older): false,
		} {
			if err := name.Verify(got.header, got.body, now); (err == nil) != want {
				t.Errorf("at %s: %v, want verified=%v", c.at.Sub(noon), err, want)
			}
		}
	}
}

// TestRotationReadsTheClockOnce: the time that is sent is the one that decided who signs, also where the window ends in between.
func TestRotationReadsTheClockOnce(t *testing.T) {
	t.Parallel()
	rec := newReceiver(t, status(http.StatusOK))
	e := endpointAt("e", rec.URL)
	old := signature.NewSecret()
	e.Retiring = []RetiringSecret{{old, noon.Add(time.Second)}}
	reads := 0
	s := newSender(t, Config{Now: func() time.Time {
		reads++
		return noon.Add(time.Duration(reads-1) * time.Second)
	}})
	send(t, s, e)
	got := rec.requests()[0]
	if reads != 1 || got.header.Get(signature.HeaderTimestamp) != strconv.FormatInt(noon.Unix(), 10) {
		t.Errorf("the clock was read %d times for timestamp %s", reads, got.header.Get(signature.HeaderTimestamp))
	}
	if err := verifierFor(t, old).Verify(got.header, got.body, noon); err != nil {
		t.Error(err)
	}
}

// TestSigningIsExact: whatever the secrets and windows, exactly those sign that are current or in their window, each once, and the endpoint's own
// list stays as it is.
func TestSigningIsExact(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		e := Endpoint{Secrets: make([]signature.Secret, rapid.IntRange(1, 3).Draw(t, "current"), 4)}
		var want []signature.Secret
		for i := range e.Secrets {
			e.Secrets[i] = signature.NewSecret()
			want = append(want, e.Secrets[i])
		}
		at := noon.Add(time.Duration(rapid.Int64Range(-3, 3).Draw(t, "at")) * time.Minute)
		for range rapid.IntRange(0, 4).Draw(t, "retiring") {
			r := RetiringSecret{signature.NewSecret(), noon.Add(time.Duration(rapid.Int64Range(-3, 3).Draw(t, "until")) * time.Minute)}
			e.Retiring = append(e.Retiring, r)
			if at.Before(r.Until) {
				want = append(want, r.Secret)
			}
		}
		before := len(e.Secrets)
		if got := e.signing(at); !slices.EqualFunc(got, want, signature.Secret.Equal) || len(e.Secrets) != before {
			t.Fatalf("%d sign, want %d", len(got), len(want))
		}
	})
}
