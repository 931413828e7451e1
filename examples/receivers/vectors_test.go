package receivers

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"net/http"
	"os"
	"os/exec"
	"strconv"
	"testing"
	"time"

	"github.com/caisson-go/caisson/webhook/signature"
)

// vector is one signature of Standard Webhooks.
type vector struct {
	Secret    string `json:"secret"`
	ID        string `json:"id"`
	Timestamp int64  `json:"timestamp"`
	Body      []byte `json:"body_base64"`
	Signature string `json:"signature"`
}

// question is a delivery as a receiver's verify function is asked about it.
type question struct {
	Secret  string            `json:"secret"`
	Headers map[string]string `json:"headers"`
	Body    []byte            `json:"body"`
	Now     int64             `json:"now"`
}

// asked are programs that read questions and print the answers, by interpreter.
var asked = map[string][]string{
	"python3": {"-c", `
import base64, email.message, json, sys
sys.path.insert(0, "python")
sys.dont_write_bytecode = True
import receiver
answers = []
for q in json.load(sys.stdin):
    headers = email.message.Message()
    for name, value in q["headers"].items():
        headers[name] = value
    answers.append(receiver.verify([receiver.parse_secret(q["secret"])], headers, base64.b64decode(q["body"] or ""), q["now"]))
print(json.dumps(answers))
`},
	"node": {"-e", `
const { parseSecret, verify } = require('./node/receiver.js');
const answers = JSON.parse(require('fs').readFileSync(0)).map((q) => {
  const headers = Object.fromEntries(Object.entries(q.headers).map(([name, value]) => [name, [value]]));
  return verify([parseSecret(q.secret)], headers, Buffer.from(q.body ?? '', 'base64'), q.now);
});
console.log(JSON.stringify(answers));
`},
}

// The receivers and signature.Verifier judge the published vectors, and what is made of them, in the same way.
func TestVectors(t *testing.T) {
	t.Parallel()
	data, err := os.ReadFile("../../webhook/signature/testdata/vectors.json")
	if err != nil {
		t.Fatal(err)
	}
	var vectors []vector
	if err := json.Unmarshal(data, &vectors); err != nil {
		t.Fatal(err)
	}
	var questions []question
	for _, v := range vectors {
		questions = append(questions, variants(v)...)
	}
	var want []int
	good := 0
	for _, q := range questions {
		want = append(want, verdict(t, q))
		if want[len(want)-1] == 0 {
			good++
		}
	}
	if good < len(vectors) || good == len(want) {
		t.Fatalf("%d of %d questions are answered with yes: the vectors were not understood", good, len(want))
	}
	input, err := json.Marshal(questions)
	if err != nil {
		t.Fatal(err)
	}
	for name, args := range asked {
		cmd := exec.CommandContext(t.Context(), interpreter(t, name), args...)
		cmd.Stdin = bytes.NewReader(input)
		out, err := cmd.Output()
		if err != nil {
			var exit *exec.ExitError
			errors.As(err, &exit)
			t.Fatalf("%s: %v\n%s", name, err, exit.Stderr)
		}
		var got []int
		if err := json.Unmarshal(out, &got); err != nil || len(got) != len(want) {
			t.Fatalf("%s printed %s (%v)", name, out, err)
		}
		for i, q := range questions {
			if got[i] != want[i] {
				t.Errorf("%s: %d, want %d for %+v", name, got[i], want[i], q)
			}
		}
	}
}

// variants returns the vector itself, and what is like it but should be judged with care.
func variants(v vector) []question {
	base := func() question {
		return question{v.Secret, map[string]string{
			signature.HeaderID: v.ID, signature.HeaderTimestamp: strconv.FormatInt(v.Timestamp, 10), signature.HeaderSignature: v.Signature,
		}, v.Body, v.Timestamp}
	}
	list := []question{base()}
	add := func(change func(*question)) {
		q := base()
		change(&q)
		list = append(list, q)
	}
	for _, off := range []int64{-301, -300, -1, 1, 300, 301, 1 << 30} {
		add(func(q *question) { q.Now += off })
	}
	for _, header := range []string{signature.HeaderID, signature.HeaderTimestamp, signature.HeaderSignature} {
		add(func(q *question) { delete(q.Headers, header) })
		add(func(q *question) { q.Headers[header] += "0" })
	}
	for i := range v.Body {
		add(func(q *question) { q.Body = bytes.Clone(v.Body); q.Body[i] ^= 1 })
	}
	for i := range v.Signature {
		add(func(q *question) {
			s := []byte(v.Signature)
			s[i] ^= 4
			q.Headers[signature.HeaderSignature] = string(s)
		})
	}
	add(func(q *question) { q.Body = append(bytes.Clone(v.Body), 0) })
	add(func(q *question) { q.Headers[signature.HeaderID] = v.ID + ".1" })
	add(func(q *question) { q.Headers[signature.HeaderSignature] = "v1a,AAAA v2, " + v.Signature })
	add(func(q *question) { q.Headers[signature.HeaderSignature] = v.Signature + " " + v.Signature })
	add(func(q *question) { q.Secret = "whsec_" + base64.StdEncoding.EncodeToString(make([]byte, 24)) })
	return list
}

// verdict is what signature.Verifier says, as the status that a receiver answers; 0 for yes.
func verdict(t *testing.T, q question) int {
	t.Helper()
	verifier, err := signature.NewVerifier(q.Secret)
	if err != nil {
		t.Fatal(err)
	}
	header := make(http.Header)
	for name, value := range q.Headers {
		header.Set(name, value)
	}
	switch err := verifier.Verify(header, q.Body, time.Unix(q.Now, 0)); {
	case errors.Is(err, signature.ErrBadHeaders):
		return http.StatusBadRequest
	case err != nil:
		return http.StatusUnauthorized
	}
	return 0
}
