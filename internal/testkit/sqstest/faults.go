package sqstest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"sync"
	"time"
)

// ErrCut is what a client sees of a connection that broke.
var ErrCut = errors.New("sqstest: the connection was cut")

// Faults puts faults between a client and an SQS.
type Faults struct {
	// Next carries the requests: a [Server], or a transport to a real one.
	Next http.RoundTripper
	// Plan decides about each call. It is called one at a time. Nil means no faults.
	Plan func(Call) Fault

	mu      sync.Mutex
	numbers map[string]int
	held    []json.RawMessage // messages to be delivered once more
}

// Call is one request.
type Call struct {
	// Action such as "SendMessageBatch".
	Action string
	// Number of the call among those of its action, from 1.
	Number int
	// Entries is how many entries a batch has; 0 if it is none.
	Entries int
	// Body of the request, JSON.
	Body []byte
}

// Fault is what happens to one call. The zero value lets it pass.
type Fault struct {
	// Latency is waited before anything else, or until the request's context ends.
	Latency time.Duration
	// Cut breaks the connection before the request has left.
	Cut bool
	// Hang answers nothing until the request's context ends. The request is not passed on.
	Hang bool
	// Status answers with that HTTP status and Code, and passes nothing on.
	Status int
	Code   string
	// Lose passes the request on and breaks the connection under the answer.
	Lose bool
	// Linger is waited after the request was passed on and before the answer comes, or is lost.
	Linger time.Duration
	// FailEntries names entries of a batch by index. They are not passed on, and the answer of HTTP 200 says that they failed with EntryCode.
	FailEntries []int
	EntryCode   string
	SenderFault bool
	// Double delivers the messages of a receive once more, with the answer of a later one.
	Double bool
}

// Faults that SQS itself shows.
var (
	Throttled   = Fault{Status: http.StatusBadRequest, Code: "RequestThrottled"}
	OverLimit   = Fault{Status: http.StatusForbidden, Code: "OverLimit"}
	ServerError = Fault{Status: http.StatusInternalServerError, Code: "InternalFailure"}
	Unavailable = Fault{Status: http.StatusServiceUnavailable, Code: "ServiceUnavailable"}
	Denied      = Fault{Status: http.StatusForbidden, Code: "AccessDenied"}
)

// FailEntries fails entries of a batch in an answer of HTTP 200, through no fault of the client.
func FailEntries(indices ...int) Fault {
	return Fault{FailEntries: indices, EntryCode: "InternalError"}
}

// RoundTrip implements [http.RoundTripper].
func (f *Faults) RoundTrip(req *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(req.Body)
	if err != nil {
		return nil, err
	}
	_ = req.Body.Close()
	call, fault := f.decide(ActionOf(req), body)
	if err := wait(req, fault.Latency); err != nil {
		return nil, err
	}
	switch {
	case fault.Cut:
		return nil, ErrCut
	case fault.Hang:
		<-req.Context().Done()
		return nil, req.Context().Err()
	case fault.Status != 0:
		return answer(req, fault.Status, map[string]string{"__type": "com.amazonaws.sqs#" + fault.Code, "message": "made by a test"})
	case len(fault.FailEntries) > 0 && call.Entries > 0:
		return f.partly(req, body, fault)
	}
	resp, err := f.pass(req, body)
	if err == nil {
		err = wait(req, fault.Linger)
	}
	switch {
	case err != nil:
		return nil, err
	case fault.Lose:
		_, _ = io.Copy(io.Discard, resp.Body)
		_ = resp.Body.Close()
		return nil, ErrCut
	case call.Action == "ReceiveMessage":
		return f.receive(req, resp, body, fault.Double)
	}
	return resp, nil
}

func wait(req *http.Request, d time.Duration) error {
	if d <= 0 {
		return nil
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-req.Context().Done():
		return req.Context().Err()
	}
}

func (f *Faults) decide(action string, body []byte) (Call, Fault) {
	var batch struct{ Entries []json.RawMessage }
	_ = json.Unmarshal(body, &batch) // what is no batch has no entries
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.numbers == nil {
		f.numbers = map[string]int{}
	}
	f.numbers[action]++
	call := Call{Action: action, Number: f.numbers[action], Entries: len(batch.Entries), Body: body}
	if f.Plan == nil {
		return call, Fault{}
	}
	return call, f.Plan(call)
}

func (f *Faults) pass(req *http.Request, body []byte) (*http.Response, error) {
	own := req.Clone(req.Context())
	own.Body = io.NopCloser(bytes.NewReader(body))
	own.GetBody = nil
	own.ContentLength = int64(len(body))
	return f.Next.RoundTrip(own)
}

// partly passes on the entries that are not to fail, and adds the others to the answer.
func (f *Faults) partly(req *http.Request, body []byte, fault Fault) (*http.Response, error) {
	var in map[string]json.RawMessage
	var entries, kept []json.RawMessage
	if err := json.Unmarshal(body, &in); err != nil {
		return nil, err
	}
	if err := json.Unmarshal(in["Entries"], &entries); err != nil {
		return nil, err
	}
	var out struct{ Successful, Failed []json.RawMessage }
	for i, e := range entries {
		if !slices.Contains(fault.FailEntries, i) {
			kept = append(kept, e)
			continue
		}
		var id struct{ Id string } //nolint:revive // the protocol's spelling
		if err := json.Unmarshal(e, &id); err != nil {
			return nil, err
		}
		out.Failed = append(out.Failed, json.RawMessage(fmt.Sprintf(`{"Id":%q,"SenderFault":%t,"Code":%q,"Message":"made by a test"}`, id.Id, fault.SenderFault, fault.EntryCode)))
	}
	if len(kept) == 0 {
		return answer(req, http.StatusOK, out)
	}
	var err error
	if in["Entries"], err = json.Marshal(kept); err != nil {
		return nil, err
	}
	if body, err = json.Marshal(in); err != nil {
		return nil, err
	}
	resp, err := f.pass(req, body)
	if err != nil || resp.StatusCode != http.StatusOK {
		return resp, err
	}
	added := out.Failed
	out.Failed = nil
	if err := decodeBody(resp, &out); err != nil {
		return nil, err
	}
	out.Failed = append(out.Failed, added...)
	return answer(req, http.StatusOK, out)
}

// receive adds messages that are to be delivered again, as far as the client asked for that many.
func (f *Faults) receive(req *http.Request, resp *http.Response, body []byte, double bool) (*http.Response, error) {
	if resp.StatusCode != http.StatusOK {
		return resp, nil
	}
	var in struct{ MaxNumberOfMessages int }
	var out struct{ Messages []json.RawMessage }
	if err := json.Unmarshal(body, &in); err != nil {
		return nil, err
	}
	if err := decodeBody(resp, &out); err != nil {
		return nil, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	fresh := out.Messages
	n := min(len(f.held), max(in.MaxNumberOfMessages-len(fresh), 0))
	out.Messages = append(slices.Clone(fresh), f.held[:n]...)
	f.held = slices.Delete(f.held, 0, n)
	if double {
		f.held = append(f.held, fresh...)
	}
	return answer(req, http.StatusOK, out)
}

func decodeBody(resp *http.Response, into any) error {
	defer resp.Body.Close()
	return json.NewDecoder(resp.Body).Decode(into)
}
