package sqs

import (
	"strings"
	"testing"
)

func TestNames(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		"jobs": "p-jobs", "jobs.dlq": "p-jobs-dlq", "jobs.fifo": "p-jobs.fifo", "jobs.fifo.dlq": "p-jobs-dlq.fifo", "a_B-9": "p-a_B-9",
	} {
		full, err := physical("p-", name)
		if err != nil || full != want {
			t.Errorf("%q is %q in SQS, error %v; want %q", name, full, err, want)
		}
		if back, ok := logical("p-", full); !ok || back != name {
			t.Errorf("%q is %q here, want %q", full, back, name)
		}
		if isFIFO(name) != strings.HasSuffix(full, ".fifo") {
			t.Errorf("isFIFO(%q) is %t", name, isFIFO(name))
		}
	}
	for name, says := range map[string]string{
		"": "letters", "a.b": "letters", "a b": "letters", ".dlq": "letters", ".fifo": "letters", "a.dlq.fifo": "letters", "a.dlq.dlq": "letters", "K\u00fc": "letters",
		"jobs-dlq": `"jobs.dlq"`, "jobs-dlq.fifo": `"jobs.fifo.dlq"`, strings.Repeat("a", 79): "81 characters",
	} {
		if full, err := physical("p-", name); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%q is %q in SQS, error %v; want one that says %q", name, full, err, says)
		}
	}
	for _, full := range []string{"other", "p-", "p-.fifo", "p--dlq"} {
		if name, ok := logical("p-", full); ok {
			t.Errorf("%q is taken for %q", full, name)
		}
	}
}
