package schedule_test

import (
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/caisson-go/caisson/schedule"
)

func TestParse(t *testing.T) {
	t.Parallel()
	tests := []struct{ text, want string }{
		{"default", "exponential(1s, 2, 1h, full)"},
		{"queue", "fixed(30s, 2m, 10m, x0.8..1.2)"},
		{"webhook", "fixed(10s, 1m, 5m, 15m, 30m, 1h, 4h, x0.8..1.2)"},
		{"exponential(1s, 2, 1h)", "exponential(1s, 2, 1h, full)"},
		{"  exponential( 500ms ,1.5,2d , none ) ", "exponential(500ms, 1.5, 2d, none)"},
		{"exponential(1s, 3, 1m, decorrelated)", "exponential(1s, 3, 1m, decorrelated)"},
		{"fixed(0, 1m30s, x0.5..2)", "fixed(0s, 1m30s, x0.5..2)"},
		{"constant(5s)", "constant(5s, x0.8..1.2)"},
		{"constant(5s, equal)", "constant(5s, equal)"},
	}
	for _, tt := range tests {
		p, err := schedule.ParseBackoff(tt.text)
		if err != nil {
			t.Errorf("Parse(%q): %v", tt.text, err)
		} else if got := p.String(); got != tt.want {
			t.Errorf("Parse(%q) = %s, want %s", tt.text, got, tt.want)
		}
	}
	if got := (schedule.Backoff{}).String(); got != "default" {
		t.Errorf("zero policy prints as %q", got)
	}
}

func TestParseNamesTheFault(t *testing.T) {
	t.Parallel()
	tests := []struct{ text, want string }{
		{"", "it is empty"},
		{"30", "neither a name nor a curve"},
		{"fixed(30s", "neither a name nor a curve"},
		{"linear(1s)", `curve "linear" is unknown`},
		{"exponential(1s, 2)", "here are 2 arguments"},
		{"exponential(1, 2, 1h)", `base: duration "1" has no unit: write 1s`},
		{"exponential(1s, two, 1h)", `factor "two" is not a number`},
		{"exponential(1s, 2x, 1h)", `factor "2x" is not a number`},
		{"exponential(1s, 2, 1y)", `limit: duration "1y" cannot be read`},
		{"exponential(1s, 2, 1h, fully)", `jitter "fully" is unknown`},
		{"fixed()", "delay 1: duration is empty"},
		{"fixed(30s, , 2m)", "delay 2: duration is empty"},
		{"fixed(30s, 120)", `delay 2: duration "120" has no unit`},
		{"constant(1s, 2s)", "here are 2"},
		{"constant(1s, x1..)", "both ends must be numbers"},
		{"constant(1s, x1.2..0.8)", "low <= high"},
		{"constant(-1s)", "must be positive"},
	}
	for _, tt := range tests {
		_, err := schedule.ParseBackoff(tt.text)
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("Parse(%q): got %v, want %q", tt.text, err, tt.want)
		}
	}
}

func TestParseReadsWhatStringPrints(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		p := genPolicy().Draw(t, "policy")
		text, err := p.MarshalText()
		if err != nil {
			t.Fatal(err)
		}
		var back schedule.Backoff
		if err := back.UnmarshalText(text); err != nil {
			t.Fatal(err)
		}
		if !back.Equal(p) {
			t.Fatalf("%s was read back as %s", text, back)
		}
	})
}

func TestParseDuration(t *testing.T) {
	t.Parallel()
	const day = 24 * time.Hour
	good := map[string]time.Duration{
		"0": 0, "0s": 0, "30s": 30 * time.Second, " 1h30m ": 90 * time.Minute, "1.5h": 90 * time.Minute, "-2s": -2 * time.Second,
		"14d": 14 * day, "1d12h": 36 * time.Hour, "0d": 0, "106751d": 106751 * day, "250us": 250 * time.Microsecond,
	}
	for text, want := range good {
		if got, err := schedule.ParseDuration(text); err != nil || got != want {
			t.Errorf("ParseDuration(%q) = %s, %v; want %s", text, got, err, want)
		}
	}
	bad := map[string]string{
		"": "empty", "30": "write 30s", "1e3": "no unit", "-5": "no unit", "Inf": "no unit", "d": "cannot be read", "1.5d": "cannot be read",
		"1d-2h": "sign", "1d1d": "cannot be read", "106752d": "too long", "106751d24h": "too long", "99999999999999999999d": "too long", "1w": "cannot be read",
	}
	for text, want := range bad {
		if got, err := schedule.ParseDuration(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("ParseDuration(%q) = %s, %v; want an error with %q", text, got, err, want)
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, s := range []string{"default", "exponential(1s, 2, 1h, full)", "fixed(30s, 2m, x0.8..1.2)", "constant(14d)", "fixed(,)", "exponential(1s,NaN,1h)"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		p, err := schedule.ParseBackoff(text)
		if err != nil {
			return
		}
		back, err := schedule.ParseBackoff(p.String())
		if err != nil || !back.Equal(p) {
			t.Fatalf("Parse(%q) = %s, read back as %s, %v", text, p, back, err)
		}
		if p.Delay(1, 0, nil) < 0 {
			t.Fatalf("Parse(%q) waits a negative time", text)
		}
	})
}

func FuzzParseDuration(f *testing.F) {
	for _, s := range []string{"30s", "14d", "1d12h", "30", "-1h", "1h0m0s"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		d, err := schedule.ParseDuration(text)
		if err != nil {
			return
		}
		if back, err := schedule.ParseDuration(schedule.FormatDuration(d)); err != nil || back != d {
			t.Fatalf("%q is %d, printed as %s, read back as %d, %v", text, d, schedule.FormatDuration(d), back, err)
		}
	})
}
