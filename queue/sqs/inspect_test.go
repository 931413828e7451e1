package sqs_test

import (
	"strings"
	"testing"
	"time"

	"github.com/caisson-go/caisson/internal/testkit/sqstest"
	"github.com/caisson-go/caisson/queue/inspect"
	"github.com/caisson-go/caisson/queue/sqs"
)

// Field case E2: a redrive policy that clashes with the attempts is warned about, with the numbers; and what else an operator should know.
func TestInspect(t *testing.T) {
	t.Parallel()
	day := 24 * time.Hour
	use := inspect.Use{MaxAttempts: 25, LongestRun: time.Hour, MaxAge: day}
	redrive := func(n string) string {
		return `{"deadLetterTargetArn":"arn:aws:sqs:us-east-1:000000000000:jobs-dlq","maxReceiveCount":` + n + `}`
	}
	for name, c := range map[string]struct {
		set  map[string]string
		dlq  map[string]string
		use  inspect.Use
		want inspect.Severity // none: no finding
		says []string
	}{
		"as made here":        {use: use},
		"nothing known":       {},
		"count below":         {set: map[string]string{"RedrivePolicy": redrive("3")}, use: use, want: inspect.SeverityFault, says: []string{"maxReceiveCount is 3", "25 attempts"}},
		"count as text":       {set: map[string]string{"RedrivePolicy": redrive(`"25"`)}, use: use, want: inspect.SeverityFault, says: []string{"25"}},
		"count without room":  {set: map[string]string{"RedrivePolicy": redrive("30")}, use: use, want: inspect.SeverityWarning, says: []string{"is 30", "at least 125"}},
		"no policy":           {set: map[string]string{"RedrivePolicy": ""}, use: use, want: inspect.SeverityWarning, says: []string{"no redrive policy"}},
		"dead letters vanish": {dlq: map[string]string{"MessageRetentionPeriod": "604800"}, use: use, want: inspect.SeverityWarning, says: []string{"7 days", "jobs-dlq"}},
		"other dead letters":  {set: map[string]string{"RedrivePolicy": strings.ReplaceAll(redrive("1000"), "jobs-dlq", "other")}, use: use, want: inspect.SeverityNote, says: []string{":other"}},
		"half in flight":      {set: map[string]string{"ApproximateNumberOfMessagesNotVisible": "60000"}, use: use, want: inspect.SeverityWarning, says: []string{"60000 of 120000"}},
		"nearly all in flight": {
			set: map[string]string{"ApproximateNumberOfMessagesNotVisible": "119000"}, use: use, want: inspect.SeverityFault, says: []string{"119000"},
		},
		"default delay":  {set: map[string]string{"DelaySeconds": "60"}, use: use, want: inspect.SeverityWarning, says: []string{"1m0s"}},
		"small messages": {set: map[string]string{"MaximumMessageSize": "262144"}, use: use, want: inspect.SeverityNote, says: []string{"262144", "1048576"}},
		"short memory":   {set: map[string]string{"MessageRetentionPeriod": "3600"}, use: use, want: inspect.SeverityFault, says: []string{"1h0m0s", "24h0m0s"}},
		"long runs":      {use: inspect.Use{LongestRun: 13 * time.Hour}, want: inspect.SeverityFault, says: []string{"13h0m0s", "12h0m0s"}},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, sqs.Config{}, func(r *rig) {
				r.set("jobs", c.set)
				r.set("jobs-dlq", c.dlq)
				b := r.open()
				findings, err := b.Inspect(r.Context(), "jobs", c.use)
				if err != nil {
					t.Fatal(err)
				}
				if c.want == "" {
					if len(findings) > 0 {
						t.Errorf("findings %+v, want none", findings)
					}
					return
				}
				if len(findings) != 1 || findings[0].Severity != c.want || findings[0].Queue != "jobs" {
					t.Fatalf("findings %+v, want one %s", findings, c.want)
				}
				for _, text := range c.says {
					if !strings.Contains(findings[0].What+findings[0].Remedy, text) {
						t.Errorf("finding %+v does not say %q", findings[0], text)
					}
				}
			})
		})
	}
}

func TestInspectWithoutPermission(t *testing.T) {
	t.Parallel()
	inBubble(t, sqs.Config{}, func(r *rig) {
		b := r.open()
		r.from(func(c sqstest.Call) sqstest.Fault {
			if c.Action == "GetQueueAttributes" {
				return sqstest.Denied
			}
			return sqstest.Fault{}
		})
		findings, err := b.Inspect(r.Context(), "jobs", inspect.Use{})
		if err != nil || len(findings) != 1 || !strings.Contains(findings[0].Remedy, "sqs:GetQueueAttributes") {
			t.Errorf("findings %+v, error %v", findings, err)
		}
		for i, res := range b.Publish(r.Context(), "jobs", texts(2)) { // which works all the same
			if res.Err != nil {
				t.Errorf("message %d: %v", i, res.Err)
			}
		}
		if d, err := b.Depth(r.Context(), "jobs"); err != nil || d.Ready.Known {
			t.Errorf("depth %+v, error %v, want unknown counts", d, err)
		}
	})
}

// Dead-letter queues are queues like others, without a redrive policy.
func TestInspectDLQ(t *testing.T) {
	t.Parallel()
	inBubble(t, sqs.Config{}, func(r *rig) {
		if findings, err := r.b.Inspect(r.Context(), "jobs.dlq", inspect.Use{}); err != nil || len(findings) > 0 {
			t.Errorf("findings %+v, error %v", findings, err)
		}
	})
}
